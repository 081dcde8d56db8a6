package org.apache.spark.sql.penstock

import java.util.concurrent.locks.{Condition, ReentrantLock}

import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.execution.streaming.sinks.FileStreamSink
import org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink
import org.apache.spark.sql.execution.streaming.state.RocksDB
import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks}

import Checks._

/** Private members of Spark that another patch release may lack. */
object SparkMemberCases extends Cases {

  /** A query as a Spark has it that this version is no more. */
  final class Running {
    val lock = new ReentrantLock
    val condition: Condition = lock.newCondition()
    def progressLock: ReentrantLock = lock
    def progressCondition: Condition = condition
  }

  private val lockOf =
    new SparkMethod[Running, ReentrantLock](classOf[Running], "progressLock", classOf[ReentrantLock])
  private val conditionOf =
    new SparkMethod[Running, Condition](classOf[Running], "progressCondition", classOf[Condition])
  private val movedLock =
    new SparkMethod[Running, ReentrantLock](classOf[Running], "moved", classOf[ReentrantLock])
  private val movedCondition =
    new SparkMethod[Running, Condition](classOf[Running], "moved", classOf[Condition])

  check("a_query_whose_lock_cannot_be_seen_is_taken_to_be_waited_for", once) { _ =>
    val running = new Running
    running.lock.lock()
    equal("nobody waits", StreamThread.isAwaited(running, lockOf, conditionOf), false)
    equal("no lock", StreamThread.isAwaited(running, movedLock, conditionOf), true)
    equal("no condition", StreamThread.isAwaited(running, lockOf, movedCondition), true)
    val waiting = aside { running.lock.lock(); running.lock.unlock() }
    eventually("somebody waits")(running.lock.hasQueuedThreads)
    equal("somebody waits", StreamThread.isAwaited(running, lockOf, conditionOf), true)
    running.lock.unlock()
    waiting.join()
  }

  /** A source of files that deletes what it has read, or does not. */
  final class Files(cleaner: Option[String]) { def has: Option[String] = cleaner }

  check("a_source_whose_cleaner_cannot_be_seen_is_taken_to_delete", once) { _ =>
    val cleanerOf = new SparkField[Files, Option[_]](classOf[Files], "cleaner", classOf[Option[_]])
    val moved = new SparkField[Files, Option[_]](classOf[Files], "moved", classOf[Option[_]])
    equal("it deletes", RunningQuery.isCleaning(new Files(Some("delete")), cleanerOf), true)
    equal("it does not", RunningQuery.isCleaning(new Files(None), cleanerOf), false)
    equal("nobody knows", RunningQuery.isCleaning(new Files(None), moved), true)
  }

  /** A sink that Spark hands a whole batch to. */
  abstract class WholeBatches extends Sink

  check("a_file_sink_whose_log_cannot_be_seen_is_taken_to_skip_and_others_are_as_before", once) { _ =>
    val moved = new SparkField[FileStreamSink, AnyRef](
      classOf[FileStreamSink], "moved", classOf[AnyRef])
    for ((log, mayFilesSkip) <- Seq(SparkMembers.FileSinkLog -> false, moved -> true)) {
      equal("files", RunningQuery.maySkip(classOf[FileStreamSink], log), mayFilesSkip)
      equal("foreachBatch", RunningQuery.maySkip(classOf[ForeachBatchSink[_]], log), false)
      equal("another sink", RunningQuery.maySkip(classOf[WholeBatches], log), true)
      equal("no such sink", RunningQuery.maySkip(classOf[String], log), false)
    }
  }

  check("no_session_is_refused_for_the_native_store_or_the_log_of_file_sinks", once) { _ =>
    Seq(SparkMembers.NativeStore, SparkMembers.FileSinkLog).foreach { member =>
      holds(s"no session is refused for $member")(!SparkMembers.needed.contains(member))
      holds(s"$member is named where it is missing")(SparkMembers.optional.exists(_._1 == member))
    }
  }

  check("what_a_query_can_do_without_is_named_where_it_is_missing_and_nothing_is_refused", once) { _ =>
    val moved = new SparkField[RocksDB, AnyRef](classOf[RocksDB], "moved", classOf[AnyRef])
    val sentences = SparkMembers.missingOf(Seq(moved -> "it takes longer", lockOf -> "nothing is lost"))
    equal("sentences", sentences.size, 1)
    holds(s"it is named: ${sentences.head}") {
      sentences.head.endsWith(s"has no field moved of class ${classOf[RocksDB].getName}: it takes longer. Nothing else differs")
    }
    equal("what this Spark lacks", SparkMembers.missing, Nil)
    SparkMembers.check()
  }
}
