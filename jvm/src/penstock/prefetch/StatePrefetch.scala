// Scala because: tasks of this JVM hand hints to the cache in front of its state stores.
package penstock.prefetch

/**
 * Whose hot keys a sketch counts: of tasks that see the same rows. A row passes several candidates,
 * and a join has two inputs; each counts it once.
 *
 * @param partition the number of the task
 */
final case class SketchOf(
    run: String,
    operator: Long,
    candidate: Candidate,
    input: Int,
    partition: Int)

/** Takes hints and counts what became of them; one for all stores of a JVM. */
trait StatePrefetch {

  /**
   * Takes note that keys will be asked for. Returns at once and never throws: a hint may be
   * dropped, which costs a read and no answer. False if their store is not open here, or none of
   * them was taken for a fault.
   */
  def hint(hints: HintBatch): Boolean

  /** The batch under way reads each stream of the log up to this position. */
  def reads(run: String, until: Map[String, Long]): Unit

  /**
   * The sketch of hot keys of a task that hints: the same one for the task of the next batch.
   * `start` is the threshold that a run begins with.
   */
  def hotKeys(of: SketchOf, start: Int): HotKeys

  /** What was counted for the stores of a run since this was last asked; nothing twice. */
  def counts(run: String): Seq[PrefetchCounts]
}
