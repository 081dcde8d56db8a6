// Scala because: it implements Spark's ExecutorPlugin, which every executor makes when it
// starts.
package penstock.plugin

import java.util.{Map => JMap}

import scala.util.control.NonFatal

import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.sql.penstock.{NewsChannel, SparkFolders, SparkMembers}

import penstock.commit.channel.HowFar
import penstock.commit.driver.{OpenQuestions, ReleaseQueues}
import penstock.commit.jvm.JvmResources

/** The plug-in on an executor: its way to the driver. */
private[penstock] final class ExecutorPart extends ExecutorPlugin {
  import ExecutorPart._

  override def init(context: PluginContext, extra: JMap[String, String]): Unit = {
    SparkMembers.check()
    val resources = JvmResources.here
    val news = Option.unless(ReleaseQueues.isDriver)(NewsChannel.toDriver(AnswerMs))
    resources.releases.executorReady(context, news)
    if (!ReleaseQueues.isDriver) {
      // A cluster may end the process while `shutdown` waits.
      SparkFolders.beforeTheyAreDeleted(drain(resources))
    }
  }

  /**
   * What this executor alone has is made durable before it goes, wherever its application stops or
   * has no more use for it: else a batch that is computed would be computed again. In a local
   * application the driver shares this JVM, and closes what is open when it is done.
   */
  override def shutdown(): Unit = if (!ReleaseQueues.isDriver) {
    drain(JvmResources.here)
    JvmResources.close()
  }

  private def drain(resources: JvmResources): Unit = {
    val end = resources.clock.deadline(DrainMs)
    while (!end.isOver && !resources.heldState.awaitAllDurable(LookMs) && isDriverThere(resources)) ()
  }

  /** Without it nothing that is written counts: a batch is committed by the driver. */
  private def isDriverThere(resources: JvmResources): Boolean =
    try {
      resources.heldState.runs.foreach(run => resources.releases.ask(HowFar(run)))
      true
    } catch { case NonFatal(_) => false }
}

private object ExecutorPart {

  /** Spark's own cluster kills an executor 10 s after it has told it to end. */
  val DrainMs = 8000L

  /** How often it is looked whether the driver is still there. */
  val LookMs = 500L

  /** An open question is answered by then, unless the driver is gone. */
  val AnswerMs: Long = 3 * OpenQuestions.HoldMs
}
