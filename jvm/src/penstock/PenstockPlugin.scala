package penstock

import java.util.{Collections, Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.scheduler.{SparkListener, SparkListenerExecutorRemoved}

import penstock.commit.{JvmResources, Message, Releases, Wire}

/** The channel from executors to the driver: acks of state go to the release queues. */
final class PenstockPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new OnDriver

  override def executorPlugin(): ExecutorPlugin = new OnExecutor
}

private final class OnDriver extends DriverPlugin {
  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    context.addSparkListener(new SparkListener {
      override def onExecutorRemoved(removed: SparkListenerExecutorRemoved): Unit =
        JvmResources.here.releases.all.foreach(_.writerLost(removed.executorId))
    })
    JvmResources.here.releases.driverReady()
    Collections.emptyMap()
  }

  /** One thread of the driver serves all executors: the queues answer without waiting. */
  override def receive(message: Object): Object = message match {
    case told: Array[Byte] => 
      Wire.encode(JvmResources.here.releases.receive(Wire.decode[Message](told)))
    case other => throw new Bug("unknown_message", s"an executor sent ${other.getClass.getName}")
  }

  /** What is computed should not be computed again: a moment to make it durable. */
  override def shutdown(): Unit = {
    JvmResources.here.releases.all.foreach(_.drain(OnDriver.DrainMs))
    JvmResources.close()
  }
}

private object OnDriver {
  val DrainMs = 10000L
}

private final class OnExecutor extends ExecutorPlugin {
  override def init(context: PluginContext, extra: JMap[String, String]): Unit =
    JvmResources.here.releases.executorReady(context)

  /** In a local application the driver shares this JVM, and closes what is open when it is done. */
  override def shutdown(): Unit = if (!Releases.isDriver) JvmResources.close()
}
