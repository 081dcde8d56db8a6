package penstock

import java.util.{Collections, Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.scheduler.{SparkListener, SparkListenerExecutorRemoved}

import penstock.commit.{Message, Releases, Wire}

/** The channel from executors to the driver: acks of state go to the release queues. */
final class PenstockPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new OnDriver

  override def executorPlugin(): ExecutorPlugin = new OnExecutor
}

private final class OnDriver extends DriverPlugin {
  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    context.addSparkListener(new SparkListener {
      override def onExecutorRemoved(removed: SparkListenerExecutorRemoved): Unit =
        Releases.all.foreach(_.writerLost(removed.executorId))
    })
    Releases.driverReady()
    Collections.emptyMap()
  }

  /** One thread of the driver serves all executors: the queues answer without waiting. */
  override def receive(message: Object): Object = message match {
    case told: Array[Byte] => Wire.encode(Releases.receive(Wire.decode[Message](told)))
    case other => throw new Bug("unknown_message", s"an executor sent ${other.getClass.getName}")
  }

  /** What is computed should not be computed again: a moment to make it durable. */
  override def shutdown(): Unit = Releases.all.foreach(_.drain(OnDriver.DrainMs))
}

private object OnDriver {
  val DrainMs = 10000L
}

private final class OnExecutor extends ExecutorPlugin {
  override def init(context: PluginContext, extra: JMap[String, String]): Unit =
    Releases.executorReady(context)
}
