// Scala because: it implements Spark's ExecutorPlugin, which every executor makes when it
// starts.
package penstock.plugin

import java.util.{Map => JMap}

import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.sql.penstock.SparkMembers

import penstock.commit.driver.ReleaseQueues
import penstock.commit.jvm.JvmResources

/** The plug-in on an executor: its way to the driver. */
private[penstock] final class ExecutorPart extends ExecutorPlugin {
  override def init(context: PluginContext, extra: JMap[String, String]): Unit = {
    SparkMembers.check()
    JvmResources.here.releases.executorReady(context)
  }

  /** In a local application the driver shares this JVM, and closes what is open when it is done. */
  override def shutdown(): Unit = if (!ReleaseQueues.isDriver) JvmResources.close()
}
