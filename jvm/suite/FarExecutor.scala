package penstock.commit.executor

import java.util.{Map => JMap}
import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.Promise

import com.codahale.metrics.MetricRegistry
import org.apache.spark.SparkConf
import org.apache.spark.api.plugin.PluginContext
import org.apache.spark.resource.ResourceInformation

import penstock.Clock
import penstock.client.Gateways
import penstock.commit.{Changes, WorkerPools}
import penstock.commit.channel.{JavaBytes, Message, NotReleasing, WayToDriver, WhenOther}
import penstock.commit.driver.{OpenQuestions, ReleaseQueues}

/** An executor in another JVM than the driver's, as far as it can tell: it counts its messages. */
final class FarExecutor(driver: ReleaseQueues, open: OpenQuestions) extends ExecutorParts {
  val messages = new AtomicInteger()

  override val clock: Clock = Clock.System
  override val gateways = new Gateways(clock)
  override val changes = new Changes(clock)
  override val pools = new WorkerPools
  override val localFolder = new LocalFolder
  override val toDriver = new WayToDriver(_ => NotReleasing, isHere = false)
  override val news = new DriverNews(toDriver, changes)
  override val steps = new StepTimes(clock, toDriver)
  override val questions = new DriverQuestions(this)
  override val heldState = new HeldState(this)
  override val copier = new Copier(this)
  private[commit] override val appender = new Appender(this)
  override val jointAppends = new JointAppends

  toDriver.executorReady(Channel, Some(ask))

  override def forgetRun(run: String): Unit = news.forgetRun(run)

  private def ask(asked: Array[Byte]) = {
    messages.incrementAndGet()
    val answer = Promise[Array[Byte]]()
    open.add(JavaBytes.decode[WhenOther](asked))(other => answer.success(JavaBytes.encode(other)))
    answer.future
  }

  private object Channel extends PluginContext {
    override def ask(message: Object): Object = {
      messages.incrementAndGet()
      val asked = JavaBytes.decode[Message](message.asInstanceOf[Array[Byte]])
      JavaBytes.encode(driver.receive(asked))
    }

    override def send(message: Object): Unit = throw new UnsupportedOperationException
    override def metricRegistry(): MetricRegistry = throw new UnsupportedOperationException
    override def conf(): SparkConf = throw new UnsupportedOperationException
    override def executorID(): String = "1"
    override def hostname(): String = "far"
    override def resources(): JMap[String, ResourceInformation] =
      throw new UnsupportedOperationException
  }
}
