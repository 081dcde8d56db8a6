// Scala because: parts that run on the threads of tasks find each other through it, in one JVM.
package penstock.commit.executor

import penstock.Clock
import penstock.client.Gateways
import penstock.commit.{Changes, WorkerPools}
import penstock.commit.channel.WayToDriver

/** What makes state durable on one JVM, part by part: each part finds the others here. */
trait ExecutorParts {
  def clock: Clock

  def gateways: Gateways

  def changes: Changes

  def pools: WorkerPools

  def localFolder: LocalFolder

  def toDriver: WayToDriver

  /** What was last heard of it. */
  def news: DriverNews

  def steps: StepTimes

  def questions: DriverQuestions

  def heldState: HeldState

  def copier: Copier

  private[commit] def appender: Appender

  def jointAppends: JointAppends

  /** Drops the state that this JVM holds of a run of which nothing more becomes durable. */
  def forgetRun(run: String): Unit
}
