// Scala because: a benchmark changes how long reads of state in this JVM take while a query runs.
package penstock.prefetch

/** How long a read that needs a block waits where `prefetch.reads` declares a slower disk. */
final class DeclaredDelay {
  @volatile private var declaredMs = 1L

  def pauseMs: Long = declaredMs

  /** For all stores of this JVM, until the application is over. */
  def declare(ms: Long): Unit = declaredMs = ms
}
