package penstock.prefetch.contract

import scala.collection.mutable

import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks}

import penstock.prefetch._
import penstock.wire.Json

import Checks._

/** What the controller and the threshold of hot keys are told of hints and fetches. */
object PrefetchCases extends Cases {
  private val MsInNs = 1000000L

  /** Each read takes a millisecond, and there is one thread. */
  private def slowRig(entries: Int = 1000): CacheRig = {
    val rig = new CacheRig(entries)
    rig.native.onRead = () => rig.clock.turn(1)
    rig
  }

  private def keys(number: Int): Seq[(Int, String)] = (0 until number).map(n => 10 -> f"k$n%03d")

  private def p99Ms(times: AccessTimes): Double = times.percentileNs(0.99).toDouble / MsInNs

  check("a_fetch_is_timed_from_when_it_only_waits_for_a_thread", once) { _ =>
    val rig = slowRig()
    rig.hint(keys(100): _*)
    rig.fetchAll()
    val counts = rig.counts()
    equal("fetches timed", counts.fetchTimes.total, 100L)
    holds(s"p99 of a read is a millisecond, not ${p99Ms(counts.accessTimes)}")(p99Ms(counts.accessTimes) < 2)
    holds(s"p99 with the wait is 99 ms, not ${p99Ms(counts.fetchTimes)}")(
      p99Ms(counts.fetchTimes) >= 99 && p99Ms(counts.fetchTimes) < 125)
  }

  check("neither_a_wait_for_room_nor_for_the_store_counts_as_access", once) { _ =>
    val rig = slowRig(entries = 4)
    rig.store.shut()
    rig.hint(keys(20): _*)
    rig.clock.turn(500)
    rig.store.open()
    keys(20).foreach { case (_, key) =>
      rig.fetchAll()
      rig.clock.turn(200)
      rig.get(key)
    }
    val counts = rig.counts()
    equal("reads by the task", counts.misses, 0L)
    holds(s"p99 of a fetch is some reads, not ${p99Ms(counts.fetchTimes)} ms")(p99Ms(counts.fetchTimes) < 10)
  }

  check("a_hint_that_comes_after_its_batch_was_committed_is_late_and_not_unused", once) { _ =>
    val rig = new CacheRig()
    rig.native.put("cached", "1")
    rig.get("cached")
    rig.store.begin(7)
    rig.store.endBatch()
    rig.counts()
    rig.hintFor(7, 10 -> "a", 11 -> "cached")
    rig.fetchAll()
    rig.store.endBatch()
    rig.store.endBatch()
    val counts = rig.counts()
    equal("late, dropped, unused", (counts.late, counts.dropped, rig.unusedOf(counts)), (2L, 0L, 0L))
    equal("reads for it", rig.native.reads, 1)
    rig.hintFor(10, 10 -> "a")
    rig.fetchAll()
    equal("one of the batch under way is fetched", rig.native.reads, 2)
    rig.store.endBatch()
    rig.store.begin(10)
    rig.hintFor(10, 10 -> "b")
    rig.fetchAll()
    equal("another attempt of a batch is not late", rig.native.reads, 3)
  }

  check("what_follows_from_a_fetch_whose_batch_is_over_is_not_hinted", once) { _ =>
    val rig = new CacheRig()
    val followed = mutable.Buffer.empty[String]
    rig.followUp = Some { (key, _, _, _) =>
      followed += new String(key)
      None
    }
    rig.hint(10 -> "a")
    rig.fetchAll()
    rig.hint(10 -> "b")
    val end = rig.heldFetch()
    rig.store.endBatch()
    end()
    equal("keys that were followed", followed.toSeq, Seq("a"))
  }

  check("the_threshold_of_hot_keys_is_tuned_once_a_batch_by_all_stores", once) { _ =>
    val missed = HotBatch(reads = 200, misses = 100, suppressed = 10)
    val first = RunThreshold(16, batch = 0, missed)
    val ofBatch = Seq.fill(7)(missed).foldLeft(first)((tuned, store) => tuned.after(0, store, start = 16))
    equal("while the batch goes on", ofBatch.value, 16)
    equal("when the next one is committed", ofBatch.after(1, missed, start = 16).value, 32)
    val few = HotBatch(reads = 40, misses = 20, suppressed = 1)
    equal("by many stores with few reads each",
      Seq.fill(8)(few).foldLeft(RunThreshold(16, 0, few))((tuned, store) => tuned.after(0, store, 16))
        .after(1, few, 16).value, 32)
    equal("a straggler of an earlier batch changes nothing",
      ofBatch.after(1, missed, 16).after(0, missed, 16).value, 32)
  }

  private final class Lines extends AbstractAppender("prefetch cases", null, null, false, Property.EMPTY_ARRAY) {
    val texts = mutable.Buffer.empty[String]

    override def append(event: LogEvent): Unit = synchronized {
      texts += event.getMessage.getFormattedMessage
      ()
    }
  }

  check("what_is_counted_of_a_run_that_has_ended_is_forgotten", once) { _ =>
    val rig = slowRig()
    rig.get("a")
    val late = rig.counts().copy(store = "state/0/1")
    val lookaheads = new Lookaheads
    val facts = BatchFacts((_, _) => false, _ => 0L)
    val candidates = new ActiveCandidates(_ => Seq(late), lookaheads, facts, new RelayedHints)
    candidates.counted(late.run, Seq(late))
    equal("runs known", candidates.size, 1)
    candidates.endRun(late.run)
    lookaheads.planned(late.run, Seq(OperatorLookahead(0, "aggregate", Candidate.all, Set.empty, Nil)))
    candidates.counted(late.run, Seq(late))
    holds("it has no operators")(candidates.json(late.run).contains("\"operators\":[]"))
    equal("its metrics", candidates.metrics(late.run), Map.empty[String, String])
    equal("runs known after its end", candidates.size, 0)
  }

  check("every_switch_of_the_controller_is_in_the_log_with_its_reason", once) { _ =>
    val control = new OperatorControl("some-run", 3)
    val lines = new Lines
    lines.start()
    val logger = LogManager.getLogger(classOf[OperatorControl].getName).asInstanceOf[Logger]
    val before = logger.getLevel
    logger.setLevel(Level.INFO)
    logger.addAppender(lines)
    try {
      val rig = slowRig()
      rig.get("a")
      control.counted(rig.counts())
      def decide(batch: Long, offered: Seq[Candidate]) =
        control.decide(batch, ControlTerms(), offered, Map.empty, hasFailedAttempts = false)
      (1L to 3L).foreach(decide(_, Candidate.all))
      decide(4, Seq(Candidate.B, Candidate.C))
      decide(4, Nil)
    } finally {
      logger.removeAppender(lines)
      logger.setLevel(before)
    }
    equal("what is logged", lines.texts.toSeq, Seq(
      "keys of operator 3 of run some-run are hinted from A and D after batch 0: 1 reads of batch 0 " +
        "missed the cache: A hints, the earliest of the candidates",
      "keys of operator 3 of run some-run are hinted from B after batch 3: the candidates in the plan " +
        "are now B C; too few batches have been timed: B is the earliest of the rest",
      "keys of operator 3 of run some-run are hinted from nowhere after batch 3: the candidates in the " +
        "plan are now none"))
    val shown = Json.createObjectNode()
    control.fill(shown, None)
    equal("switches that are shown", shown.path("switches").findValuesAsText("reason").size, 3)
  }
}
