// Scala because: Spark's planner and file manager ask it, on the stream thread, at every batch.
package penstock.query

import org.apache.spark.sql.penstock.{RunningQuery, SinkKind}

import penstock.settings.Mode

/** A gate for the batch that is being planned. */
final case class Gate(run: String, batch: Long, sink: SinkKind) {

  /** Files are shown when the job of their batch ends, all else perhaps row by row. */
  def beforeFirstRow: Boolean = sink != SinkKind.Files
}

/** What a run may leave for later, by what its sink shows and when, and what its sources delete. */
object Gate {

  /** The gate that the plan of the calling stream thread needs, if any. */
  def forThisThread: Option[Gate] = for {
    (query, run) <- RunningQuery.streamThread
    batch <- RunningQuery.batchOfThisThread
    queryRun <- QueryRuns.here.ofQuery(query) if queryRun.run == run && isGated(queryRun)
  } yield {
    queryRun.gatedBatch = batch
    Gate(run, batch, RunningQuery.sinkOf(query))
  }

  /** The plan of a batch with a gate is executed: its sink does not skip it. */
  def executing(run: String, batch: Long): Unit =
    QueryRuns.here.ofRun(run).foreach(_.executedBatch = batch)

  /** Whether the sink has skipped the batch: its state is what the run that was killed left. */
  private[penstock] def isSkipped(run: QueryRun, batch: Long): Boolean =
    run.gatedBatch == batch && run.executedBatch != batch

  /**
   * Whether the offsets of a batch must be durable before it is computed. Not if nothing of the
   * batch can be seen before its marker, nor if there is a gate before its sink: a plan is made
   * after this, so the plan of the batch before tells.
   */
  private[penstock] def isSynchronous(run: QueryRun, batch: Long): Boolean =
    run.mode != Mode.Full ||
      !(writesToLog(run) || (isSinkKnown(run) && run.gatedBatch == batch - 1))

  /**
   * Whether a batch must be committed when Spark counts it as done: if a source deletes what the
   * batch has read as soon as the next one is cut; and if the batch is to be visible by then. Our
   * own sources wait for that before they say that there is nothing more to read, as
   * `processAllAvailable` needs; others do not.
   */
  private[penstock] def mustCommitAtOnce(run: QueryRun): Boolean =
    (writesToLog(run) && !RunningQuery.readsOnlyFromLog(run.query)) ||
      RunningQuery.hasSourceThatDeletes(run.query)

  private def writesToLog(run: QueryRun): Boolean = run.queue.exists(_.instance.isDefined)

  private def isGated(run: QueryRun): Boolean = run.queue.isDefined && !writesToLog(run)

  /** Sinks with which the gate has passed its crash tests; offsets of others are synchronous. */
  private def isSinkKnown(run: QueryRun): Boolean =
    RunningQuery.sinkOf(run.query) != SinkKind.Other
}
