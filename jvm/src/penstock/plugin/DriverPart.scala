// Scala because: it implements Spark's DriverPlugin, which executors of the application call.
package penstock.plugin

import java.util.{Collections, Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, PluginContext}
import org.apache.spark.scheduler.{SparkListener, SparkListenerExecutorRemoved}
import org.apache.spark.sql.penstock.{NewsChannel, SparkMembers}

import penstock.Bug
import penstock.commit.channel.{JavaBytes, Message, WhenOther}
import penstock.commit.jvm.JvmResources

/** The plug-in on the driver: hears of executors that are gone, and answers those that are there. */
private[penstock] final class DriverPart extends DriverPlugin {
  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    SparkMembers.check()
    context.addSparkListener(new SparkListener {
      override def onExecutorRemoved(removed: SparkListenerExecutorRemoved): Unit =
        JvmResources.here.releases.all.foreach(_.writerLost(removed.executorId))
    })
    NewsChannel.open(context) { (asked, reply) =>
      JvmResources.here.openQuestions.add(JavaBytes.decode[WhenOther](asked)) { answer =>
        reply(JavaBytes.encode(answer))
      }
    }
    JvmResources.here.releases.driverReady()
    Collections.emptyMap()
  }

  /** One thread of the driver serves all executors: the queues answer without waiting. */
  override def receive(message: Object): Object = message match {
    case bytes: Array[Byte] =>
      JavaBytes.encode(JvmResources.here.releases.receive(JavaBytes.decode[Message](bytes)))
    case other => throw new Bug("unknown_message", s"an executor sent ${other.getClass.getName}")
  }

  /** What is computed should not be computed again: a moment to make it durable. */
  override def shutdown(): Unit = {
    JvmResources.here.releases.all.foreach(_.drain(DriverPart.DrainMs))
    JvmResources.close()
  }
}

private object DriverPart {
  val DrainMs = 10000L
}
