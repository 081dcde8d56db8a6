// Scala because: Spark makes source, sink and file manager apart, and they find each other here.
package penstock.query

import java.util.concurrent.{CompletableFuture, ConcurrentHashMap}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.penstock.RunningQuery

import penstock.BadCall
import penstock.commit.jvm.{JvmPart, JvmResources}
import penstock.observe.SinkTimes

/**
 * The runs of this driver that have not ended: source, sink and file manager of a query meet here.
 * JvmResources drops a run when it ends, or when the application does.
 */
final class QueryRuns private extends JvmPart {
  import QueryRuns._

  private val byQuery = new ConcurrentHashMap[String, QueryRun]()
  private val byRoot = new ConcurrentHashMap[String, QueryRun]()

  private[penstock] def started(checkpointRoot: String, run: QueryRun): Unit = {
    byQuery.put(run.query, run)
    byRoot.put(checkpointRoot, run)
    SparkSession.getActiveSession.foreach(session => JvmResources.here.watch(session.sparkContext))
    JvmResources.here.atEndOf(run.run) {
      byQuery.remove(run.query, run)
      byRoot.remove(checkpointRoot, run)
      ()
    }
  }

  private[penstock] def ofCheckpoint(root: String): Option[QueryRun] = Option(byRoot.get(root))

  private[penstock] def ofQuery(query: String): Option[QueryRun] = Option(byQuery.get(query))

  private[penstock] def ofRun(run: String): Option[QueryRun] =
    byQuery.values.asScala.find(_.run == run)

  /** The task log the sink of a query commits to. */
  def logOf(query: String): TaskLog = {
    val run = Option(byQuery.get(query)).getOrElse(
      throw new BadCall(
        "no_file_manager",
        "the Penstock sink commits through its checkpoint file manager, which this session does " +
          "not have: set spark.sql.streaming.checkpointFileManagerClass=" +
          s"${FileManagerClass} (penstock.attach does)"))
    run.log.getOrElse(
      throw new BadCall(
        "no_server",
        s"query $query writes to the log, but its session has no server: penstock.session() " +
          "starts one, penstock.attach(builder, url=...) names one"))
  }

  /** The tasks of a batch have appended their rows; times are summed over them. */
  private[penstock] def appended(query: String, batch: Long, times: SinkTimes): Unit =
    JvmResources.here.batches.appended(query, batch, times)

  /** The task log of the query whose stream thread is calling. */
  def logOfThisThread: Option[TaskLog] = ofThisThread.flatMap(_.log)

  /** Throws what has stopped the commits of the calling query, if anything has. */
  def check(): Unit = ofThisThread.flatMap(_.queue).foreach(_.check())

  /** Returns when everything the calling query has computed is committed. */
  def awaitCommitted(): Unit = ofThisThread.flatMap(_.queue).foreach(_.awaitAllCommitted())

  /** Whether something that the calling query has computed is not committed yet. */
  def isCommitting: Boolean = ofThisThread.flatMap(_.queue).exists(!_.isCommitted)

  /**
   * The answer to a question, if it is there before everything that the calling query has computed is
   * committed. It is asked on another thread, which is interrupted once the answer comes too late.
   */
  def answerBeforeCommit[A](ask: => A): Option[A] =
    ofThisThread.flatMap(_.queue).flatMap { queue =>
      val answer = new CompletableFuture[Try[A]]
      val asking = new Thread(
        // Interrupted, it is one that nobody waits for any more.
        () =>
          try { answer.complete(Try(ask)); queue.changed() }
          catch { case _: InterruptedException => },
        "penstock-ask")
      asking.setDaemon(true)
      asking.start()
      val isThere =
        try {
          queue.awaitAllCommitted(answer.isDone)
          answer.isDone
        } finally asking.interrupt()
      Option.when(isThere)(answer.join().get)
    }

  /** Returns when what the calling query has computed is in its checkpoint, or time is up. */
  def drain(): Unit = ofThisThread.flatMap(_.queue).foreach(_.drain(DrainMs))

  private def ofThisThread: Option[QueryRun] =
    RunningQuery.streamThread.flatMap { case (query, _) => Option(byQuery.get(query)) }
}

object QueryRuns {
  private val DrainMs = 10000L

  /** By its name, because that class knows this one. */
  private val FileManagerClass = "penstock.checkpoint.PenstockFileManager"

  /** Those of this driver. */
  def here: QueryRuns = JvmResources.here.parts.of(classOf[QueryRuns])(new QueryRuns)
}
