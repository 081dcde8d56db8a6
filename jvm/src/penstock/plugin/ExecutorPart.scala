// Scala because: it implements Spark's ExecutorPlugin, which every executor makes when it
// starts.
package penstock.plugin

import java.util.{Map => JMap}

import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.sql.penstock.SparkMembers

import penstock.commit.driver.ReleaseQueues

/** The plug-in on an executor: its way to the driver. */
private[penstock] final class ExecutorPart extends ExecutorPlugin {
  override def init(context: PluginContext, extra: JMap[String, String]): Unit = {
    SparkMembers.check()
    ReleaseQueues.executorReady(context)
  }
}
