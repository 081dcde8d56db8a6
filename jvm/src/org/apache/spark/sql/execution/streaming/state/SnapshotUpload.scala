// Scala because: it hands Spark's own object of a snapshot to Spark's upload, on a pool of the
// executor.
package org.apache.spark.sql.execution.streaming.state

import java.io.File

import penstock.{Failpoint, TryAgain}
import penstock.commit.Retrying
import penstock.commit.executor.Expected
import penstock.commit.jvm.JvmResources
import penstock.settings.CommitSettings

/**
 * The upload of one snapshot. Spark deletes the LSM checkpoint after one try, so each try is given
 * one that it cannot. It is deleted when the upload is over, and not when its thread is: the
 * heartbeat has it done again.
 *
 * @param expected the file that a batch waits for; None: the store can do without this snapshot
 */
private[state] final class SnapshotUpload(
    store: String,
    run: String,
    settings: CommitSettings,
    snapshot: RocksDB.RocksDBSnapshot,
    expected: Option[Expected])(
    upload: RocksDB.RocksDBSnapshot => Unit,
    onGivenUp: (String, Throwable) => Unit)
    extends Retrying(settings, JvmResources.here.clock) {

  private var hasBegun = false
  private var isOver = false
  @volatile private var isUploaded = false
  private def resources = JvmResources.here

  override def name: String = s"upload of snapshot ${snapshot.version}"

  /** Of a run that is over nothing more is released: a try could only fail. */
  override protected def isPointless: Boolean = isUploaded || !resources.questions.goesOn(run)

  override protected def once(): Unit = {
    Failpoint.reach("before_snapshot", run, snapshot.version - 1)
    // What a try before this one wrote beside the files it was to upload.
    new File(snapshot.checkpointDir, "metadata").delete()
    resources.steps.timed(run, "upload")(resources.heldState.upload(expected)(upload(kept)))
    isUploaded = true
  }

  override protected def giveUp(e: Throwable): Unit = onGivenUp(name, e)

  override def perform(): Unit = if (begins()) {
    super.perform()
    if (!isUploaded && isPointless) resources.forgetRun(run)
    end()
  }

  /** Called for one that waits for its batch, by whoever must not wait. */
  def dropUnlessBegun(): Unit = synchronized(if (!hasBegun) end())

  def await(): Unit =
    if (!resources.clock.await(this, settings.stallMs)(isOver)) {
      throw LateWork.error(name, store, settings.stallMs)
    }

  /** False if it is over: it was dropped, or the thread that has ended was through with it. */
  private def begins(): Boolean = synchronized {
    hasBegun = true
    !isOver
  }

  private def end(): Unit = synchronized {
    if (!isOver) snapshot.close()
    isOver = true
    notifyAll()
  }

  private def kept: RocksDB.RocksDBSnapshot =
    new RocksDB.RocksDBSnapshot(
      snapshot.checkpointDir, snapshot.version, snapshot.numKeys, snapshot.numInternalKeys,
      snapshot.columnFamilyMapping, snapshot.maxColumnFamilyId, snapshot.dfsFileSuffix,
      snapshot.fileMapping, snapshot.uniqueId) {
      override def close(): Unit = ()
    }
}

private[state] object LateWork {
  def error(work: String, store: String, limitMs: Long): TryAgain = new TryAgain(
    "commit_late",
    s"$work of $store has not ended after ${limitMs / 1000} s; look at this executor's log and " +
      "disk, and restart the query: it goes on from the last durable batch")
}
