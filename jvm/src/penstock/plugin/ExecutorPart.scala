// Scala because: it implements Spark's ExecutorPlugin, which every executor makes when it
// starts.
package penstock.plugin

import java.util.{Map => JMap}

import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.sql.penstock.{NewsChannel, SparkMembers}

import penstock.commit.driver.{OpenQuestions, ReleaseQueues}
import penstock.commit.jvm.JvmResources

/** The plug-in on an executor: its way to the driver. */
private[penstock] final class ExecutorPart extends ExecutorPlugin {
  import ExecutorPart._

  override def init(context: PluginContext, extra: JMap[String, String]): Unit = {
    SparkMembers.check()
    val news = Option.unless(ReleaseQueues.isDriver)(NewsChannel.toDriver(AnswerMs))
    JvmResources.here.releases.executorReady(context, news)
  }

  /** In a local application the driver shares this JVM, and closes what is open when it is done. */
  override def shutdown(): Unit = if (!ReleaseQueues.isDriver) JvmResources.close()
}

private object ExecutorPart {

  /** An open question is answered by then, unless the driver is gone. */
  val AnswerMs: Long = 3 * OpenQuestions.HoldMs
}
