// Scala because: the threads that send requests are those of Spark's stream and tasks.
package penstock.client

import java.util.concurrent.CompletableFuture
import java.util.concurrent.atomic.LongAdder

import penstock.Clock

/** How many requests were sent, and how long they took until they were answered or failed. */
final class RequestTotals(clock: Clock) {
  private val sent = new LongAdder
  private val tookNs = new LongAdder

  def count: Long = sent.sum()

  def ns: Long = tookNs.sum()

  def timed[A](request: => A): A = {
    val start = clock.nanos
    sent.increment()
    try request
    finally tookNs.add(clock.nanos - start)
  }

  /** A request that is on its way already. */
  def counted[A](request: CompletableFuture[A]): CompletableFuture[A] = {
    val start = clock.nanos
    sent.increment()
    request.whenComplete((_, _) => tookNs.add(clock.nanos - start))
  }
}
