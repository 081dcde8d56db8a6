// Scala because: spark.plugins names a JVM class; jobs have this full name in their settings.
package penstock

import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, SparkPlugin}

import penstock.plugin.{DriverPart, ExecutorPart}

/** The channel from executors to the driver: acks of state go to the release queues. */
final class PenstockPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new DriverPart

  override def executorPlugin(): ExecutorPlugin = new ExecutorPart
}
