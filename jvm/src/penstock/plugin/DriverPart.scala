// Scala because: it implements Spark's DriverPlugin, which executors of the application call.
package penstock.plugin

import java.util.{Collections, Map => JMap}

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.api.plugin.{DriverPlugin, PluginContext}
import org.apache.spark.scheduler.{
  DeadlinePool,
  SparkListener,
  SparkListenerExecutorRemoved,
  SparkListenerJobStart
}
import org.apache.spark.sql.penstock.{NewsChannel, SparkMembers}

import penstock.Bug
import penstock.commit.channel.{JavaBytes, Message, WhenOther}
import penstock.commit.jvm.JvmResources
import penstock.schedule.{AskedOrder, TaskOrder}
import penstock.settings.{Connection, Keys}

/** The plug-in on the driver: hears of executors that are gone, and answers those that are there. */
private[penstock] final class DriverPart extends DriverPlugin {

  /** The order of our pool, where one is asked for: the scheduler is there only after `init`. */
  private var pool: Option[(SparkContext, TaskOrder.Order)] = None

  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    SparkMembers.check()
    pool = AskedOrder.in(context.getConf.getOption).map(order => (context, order))
    keepToken(plugin.conf())
    context.addSparkListener(new SparkListener {
      override def onExecutorRemoved(removed: SparkListenerExecutorRemoved): Unit =
        JvmResources.here.releases.all.foreach(_.writerLost(removed.executorId))
    })
    if (Keys.BatchHadoopConf.value(context.getConf.getOption) == "slim") slimConfiguration(context)
    NewsChannel.open(context) { (asked, reply) =>
      JvmResources.here.openQuestions.add(JavaBytes.decode[WhenOther](asked)) { answer =>
        reply(JavaBytes.encode(answer))
      }
    }
    JvmResources.here.releases.driverReady()
    Collections.emptyMap()
  }

  override def registerMetrics(application: String, plugin: PluginContext): Unit =
    pool.foreach { case (context, order) => DeadlinePool.addTo(context, order) }

  private def slimConfiguration(context: SparkContext): Unit = {
    val sources =
      new ConfigurationSources(context.hadoopConfiguration, SparkMembers.ConfigurationSources)
    sources.forget()
    context.addSparkListener(new SparkListener {
      override def onJobStart(started: SparkListenerJobStart): Unit = { sources.forget(); () }
    })
  }

  /** Executors get Spark's settings from the driver, and neither its environment nor its files. */
  private def keepToken(conf: SparkConf): Unit =
    if (conf.contains(Keys.Url.name)) {
      conf.set(Keys.Token.name, Connection.tokenOf(key => conf.getOption(key)))
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
