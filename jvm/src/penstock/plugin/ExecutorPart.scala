// Scala because: it implements Spark's ExecutorPlugin, which every executor makes when it
// starts.
package penstock.plugin

import java.util.{Map => JMap}

import scala.util.control.NonFatal

import org.apache.spark.TaskContext
import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.{NewsChannel, SparkFolders, SparkMembers, WorkerPython}

import penstock.Clock
import penstock.commit.channel.{HowFar, JavaBytes, MachineIs, TokenRefused, Writer}
import penstock.commit.driver.OpenQuestions
import penstock.commit.jvm.JvmResources
import penstock.devices.{InterpreterProcess, InterpreterTrial, ThisMachine}
import penstock.observe.TaskStart

/** The plug-in on an executor: its way to the driver. */
private[penstock] final class ExecutorPart extends ExecutorPlugin with Logging {
  import ExecutorPart._

  override def init(context: PluginContext, extra: JMap[String, String]): Unit = {
    SparkMembers.check()
    val resources = JvmResources.here
    val news = Option.unless(Writer.isDriver)(NewsChannel.toDriver(AnswerMs))
    resources.toDriver.executorReady(context, news)
    tellMachine(context, resources, None)
    if (!Writer.isDriver) {
      Option(extra.get(DriverPart.PythonKey)).foreach(tryWorkers(context, resources, _))
      resources.gateways.renewTokensBy { refused =>
        JavaBytes.decode[Option[String]](
          context.ask(JavaBytes.encode(TokenRefused(refused))).asInstanceOf[Array[Byte]])
      }
      // A cluster may end the process while `shutdown` waits.
      SparkFolders.beforeTheyAreDeleted(drain(resources))
    }
  }

  /**
   * Batches are planned by what is known of machines; without it they are planned all the same.
   *
   * @param tried the outcome of a try of the Python of this executor's workers, if there was one
   */
  private def tellMachine(
      context: PluginContext,
      resources: JvmResources,
      tried: Option[InterpreterTrial.Outcome]): Unit =
    try {
      val kind = ThisMachine.kind.copy(gpu = tried.flatMap(_.toOption).flatMap(_.gpu))
      val machine = MachineIs(Writer.name, kind, tried.map(_.map(_.version)))
      if (Writer.isDriver) resources.machines.reported(machine.executor, machine.kind)
      else context.send(JavaBytes.encode(machine))
    } catch { case NonFatal(e) => logDebug("the driver was not told of this machine", e) }

  /** Whether workers can run pipelines here is found out beside the tasks, before one needs it. */
  private def tryWorkers(context: PluginContext, resources: JvmResources, python: String): Unit =
    resources.interpreter.begin(new InterpreterProcess(python, WorkerPython.searchPath).tried()) {
      outcome => tellMachine(context, resources, Some(outcome))
    }

  /**
   * What this executor alone has is made durable before it goes, wherever its application stops or
   * has no more use for it: else a batch that is computed would be computed again. In a local
   * application the driver shares this JVM, and closes what is open when it is done.
   */
  override def shutdown(): Unit = if (!Writer.isDriver) {
    drain(JvmResources.here)
    JvmResources.close()
  }

  /**
   * Called on the thread of every task, when it begins: once it is over, what it and others counted
   * goes to the driver behind it. Whoever hears of the end later finds no context of the task. Its
   * stores are done by then: what was asked for first is called last.
   */
  override def onTaskStart(): Unit = {
    val isDriver = Writer.isDriver
    val task = Option(TaskContext.get()).filter(_ => isDriver)
    val stamp = task.flatMap(context => JvmResources.here.taskStamps.began(context.taskAttemptId()))
    TaskStart.begin(Clock.System.nanos, stamp)
    if (!isDriver) {
      for {
        context <- Option(TaskContext.get())
        run <- Option(context.getLocalProperty(RunKey))
        if context.getLocalProperty(QueryKey) != null
      } context.addTaskCompletionListener[Unit] { _ =>
        val resources = JvmResources.here
        if (resources.prefetch.hasStore(run)) resources.prefetchReports.due(run)
      }
    }
  }

  /** Called on the same thread when the task's result is made, before the driver is told of it. */
  override def onTaskSucceeded(): Unit = TaskStart.stamp.foreach(JvmResources.here.taskStamps.ended)

  private def drain(resources: JvmResources): Unit = {
    val end = resources.clock.deadline(DrainMs)
    while (!end.isOver && !resources.heldState.awaitAllDurable(LookMs) && isDriverThere(resources)) ()
  }

  /** Without it nothing that is written counts: a batch is committed by the driver. */
  private def isDriverThere(resources: JvmResources): Boolean =
    try {
      resources.heldState.runs.foreach(run => resources.toDriver.ask(HowFar(run)))
      true
    } catch { case NonFatal(_) => false }
}

private object ExecutorPart {

  /** Local properties of the jobs of a streaming query: its id, and that of its run. */
  val QueryKey = "sql.streaming.queryId"
  val RunKey = "spark.jobGroup.id"

  /** Spark's own cluster kills an executor 10 s after it has told it to end. */
  val DrainMs = 8000L

  /** How often it is looked whether the driver is still there. */
  val LookMs = 500L

  /** An open question is answered by then, unless the driver is gone. */
  val AnswerMs: Long = 3 * OpenQuestions.HoldMs
}
