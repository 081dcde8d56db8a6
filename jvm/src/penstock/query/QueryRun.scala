// Scala because: source, sink and file manager share it on one stream thread of the driver's
// JVM.
package penstock.query

import penstock.commit.driver.ReleaseQueue
import penstock.settings.Mode

/**
 * One run of one query on this driver.
 *
 * @param log its task log, where there is a server
 * @param queue its release queue, unless commits are made as Spark makes them
 * @param usesSparksProvider Spark takes no other provider for this query than its own
 * @param highest the last batch of which the location had offsets when the run began
 */
private[penstock] final class QueryRun(
    val query: String,
    val run: String,
    val mode: Mode,
    val log: Option[TaskLog],
    val queue: Option[ReleaseQueue],
    val highest: Long,
    val usesSparksProvider: Boolean) {

  /** The last batch whose plan has a gate. */
  @volatile var gatedBatch: Long = Long.MinValue

  /** The last batch whose plan was executed from its gate on. */
  @volatile var executedBatch: Long = Long.MinValue
}
