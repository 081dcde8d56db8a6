// Scala because: executors tell the driver of their machines through Spark's plug-in channel.
package penstock.devices

import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import penstock.wire.{GpuKind, MachineKind}

/** The machines that tasks of this application run on, by executor. */
final class Machines {
  import Machines._

  private val byExecutor = mutable.LinkedHashMap.empty[String, Machine]
  private val ended = mutable.LinkedHashSet.empty[String]

  /** An executor is there; of its machine nothing is known yet. */
  def started(executor: String): Unit = synchronized {
    if (!ended(executor)) byExecutor.getOrElseUpdate(executor, Machine(None, None))
    ()
  }

  /**
   * An executor has told of its machine.
   *
   * @param workers the version of the Python of its workers, or why these cannot run pipelines; None
   *   as long as it does not know
   */
  def reported(
      executor: String,
      kind: MachineKind,
      workers: Option[Either[String, String]] = None): Unit = synchronized {
    // What an executor sent last may come after it is known to be gone.
    if (!ended(executor)) {
      val before = byExecutor.get(executor)
      val gpu = kind.gpu.orElse(before.flatMap(_.kind).flatMap(_.gpu))
      byExecutor(executor) =
        Machine(Some(kind.copy(gpu = gpu)), workers.orElse(before.flatMap(_.workers)))
    }
  }

  /** Python workers of an executor were tried out by somebody else in its JVM. */
  def tried(executor: String, workers: Either[String, String]): Unit = synchronized {
    byExecutor.get(executor).foreach { machine =>
      byExecutor(executor) = machine.copy(workers = Some(workers))
    }
  }

  /** A worker on the machine of an executor has told of its GPU. */
  def hasGpu(executor: String, gpu: GpuKind): Unit = synchronized {
    byExecutor.get(executor).foreach { machine =>
      byExecutor(executor) = machine.copy(kind = machine.kind.map(_.copy(gpu = Some(gpu))))
    }
  }

  def gone(executor: String): Unit = synchronized {
    byExecutor -= executor
    ended += executor
    if (ended.size > EndedKept) ended -= ended.head
    ()
  }

  /** How many there are of each kind. */
  def counted: Map[MachineKind, Int] =
    synchronized(byExecutor.values.toSeq).flatMap(_.kind).groupMapReduce(identity)(_ => 1)(_ + _)

  /**
   * Why workers of some executor cannot run pipelines with a Python of this version, if that is so.
   *
   * @param mustKnow whether that holds of an executor, too, that has not told yet
   */
  def whyNotInWorkers(version: String, mustKnow: Boolean): Option[String] = synchronized {
    if (mustKnow && byExecutor.isEmpty) Some("no executor has told of its Python workers yet")
    else
      byExecutor.iterator.flatMap { case (executor, machine) =>
        reasonAgainst(executor, machine, version, mustKnow)
      }.nextOption()
  }
}

private object Machines {

  /** Executors that are gone, of which something may still be on its way. */
  val EndedKept = 1000

  final case class Machine(kind: Option[MachineKind], workers: Option[Either[String, String]])

  def reasonAgainst(
      executor: String,
      machine: Machine,
      version: String,
      mustKnow: Boolean): Option[String] = machine.workers match {
    case Some(Left(reason)) => Some(s"executor $executor says that $reason")
    case Some(Right(theirs)) =>
      Option.when(theirs != version)(
        s"workers of executor $executor have Python $theirs, and the driver has $version")
    case None =>
      Option.when(mustKnow)(s"it is not known yet whether workers of executor $executor can run it")
  }
}

/** The machine of this JVM. */
object ThisMachine {
  private val Processors = Path.of("/proc/cpuinfo")
  private val ModelName = "model name"
  private val TextMax = 200

  /** What is known without a Python worker, which alone tells of a GPU. */
  def kind: MachineKind = MachineKind(cpu, Runtime.getRuntime.availableProcessors)

  private def cpu: String =
    try {
      val lines = Files.readAllLines(Processors).asScala
      lines.find(_.startsWith(ModelName)).map(_.split(":", 2).last.trim.take(TextMax)).getOrElse(other)
    } catch { case NonFatal(_) => other }

  private def other: String = System.getProperty("os.arch", "a processor without a name")
}
