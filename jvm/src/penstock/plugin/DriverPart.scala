// Scala because: it implements Spark's DriverPlugin, which executors of the application call.
package penstock.plugin

import java.util.{Collections, Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, PluginContext}
import org.apache.spark.scheduler.{
  DeadlinePool,
  SparkListener,
  SparkListenerExecutorAdded,
  SparkListenerExecutorRemoved,
  SparkListenerJobStart
}
import org.apache.spark.sql.penstock.{NewsChannel, SparkMembers, WorkerPython}

import penstock.Bug
import penstock.commit.channel.{JavaBytes, MachineIs, Message, TokenRefused, WhenOther}
import penstock.commit.jvm.JvmResources
import penstock.schedule.{AskedOrder, TaskOrder}
import penstock.settings.Keys

/** The plug-in on the driver: hears of executors that are gone, and answers those that are there. */
private[penstock] final class DriverPart extends DriverPlugin {

  /** The order of our pool, where one is asked for: the scheduler is there only after `init`. */
  private var pool: Option[(SparkContext, TaskOrder.Order)] = None

  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    SparkMembers.check()
    Keys.refuseUnknown(context.getConf.getAll.map(_._1))
    pool = AskedOrder.in(context.getConf.getOption).map(order => (context, order))
    DriverToken.keep(plugin.conf(), JvmResources.here.gateways)
    context.addSparkListener(new SparkListener {
      override def onExecutorAdded(added: SparkListenerExecutorAdded): Unit =
        JvmResources.here.machines.started(added.executorId)

      override def onExecutorRemoved(removed: SparkListenerExecutorRemoved): Unit = {
        JvmResources.here.releases.all.foreach(_.writerLost(removed.executorId))
        JvmResources.here.machines.gone(removed.executorId)
      }
    })
    if (Keys.BatchHadoopConf.value(context.getConf.getOption) == "slim") slimConfiguration(context)
    NewsChannel.open(context) { (asked, reply) =>
      JvmResources.here.openQuestions.add(JavaBytes.decode[WhenOther](asked)) { answer =>
        reply(JavaBytes.encode(answer))
      }
    }
    JvmResources.here.releases.driverReady()
    Collections.singletonMap(DriverPart.PythonKey, WorkerPython.executable(context.getConf))
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

  /** One thread of the driver serves all executors: the queues answer without waiting. */
  override def receive(message: Object): Object = message match {
    case bytes: Array[Byte] =>
      JavaBytes.decode[Any](bytes) match {
        case ofRun: Message => JavaBytes.encode(JvmResources.here.releases.receive(ofRun))
        case TokenRefused(token) => JavaBytes.encode(JvmResources.here.gateways.tokenInsteadOf(token))
        case MachineIs(executor, kind, workers) =>
          JvmResources.here.machines.reported(executor, kind, workers)
          null // nobody waits for an answer
        case other => throw unknown(other)
      }
    case other => throw unknown(other)
  }

  private def unknown(message: Any): Bug =
    new Bug("unknown_message", s"an executor sent ${message.getClass.getName}")

  /** What is computed should not be computed again: a moment to make it durable. */
  override def shutdown(): Unit = {
    JvmResources.here.releases.all.foreach(_.drain(DriverPart.DrainMs))
    JvmResources.close()
  }
}

private object DriverPart {

  /** Under which executors are told the program of Python workers. */
  val PythonKey = "python"
  val DrainMs = 10000L
}
