// Scala because: Spark says in each JVM which of its executors that is, if it is one.
package penstock.commit.channel

import org.apache.spark.SparkEnv

/** This JVM as a writer of state. */
object Writer {
  private val DriverId = "driver"

  /** The name by which the driver knows it. */
  def name: String = Option(SparkEnv.get).map(_.executorId).getOrElse(DriverId)

  def isDriver: Boolean = name == DriverId
}
