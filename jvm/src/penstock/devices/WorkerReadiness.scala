// Scala because: what it puts together are tries in the JVMs of the driver and of Spark's executors.
package penstock.devices

import penstock.settings.Keys

/**
 * Whether Python workers can run pipelines, as far as this driver knows: by its own try, and by what
 * its executors have told of theirs. A task whose worker cannot fails, and with it the query, so
 * that nothing is planned for workers before all are known to be able.
 */
final class WorkerReadiness(trial: InterpreterTrial, machines: Machines) {

  /** The interpreter for a query with this setting for devices, or why workers are not to have it. */
  def of(setting: String): Either[String, Interpreter] =
    if (setting == Keys.AutoDevices) usable(trial.known, mustKnow = true)
    else usable(trial.awaited, mustKnow = false)

  /** Why a pipeline cannot be offered to workers now, if that is so. */
  def whyNot(offered: OfferedPipeline, setting: String): Option[String] =
    offered.leftToSpark.orElse(of(setting).left.toOption)

  /** A setting that asks for workers has them, unless it is known that they cannot. */
  private def usable(
      outcome: Option[InterpreterTrial.Outcome],
      mustKnow: Boolean): Either[String, Interpreter] = for {
    own <- outcome.getOrElse(Left("it is not known yet whether Python workers can run it"))
    _ <- machines.whyNotInWorkers(own.version, mustKnow).toLeft(())
  } yield own
}
