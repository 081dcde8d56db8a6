// Scala because: it leads from the threads of tasks to the driver through Spark's plug-in channel.
package penstock.commit.channel

import scala.concurrent.{ExecutionContext, Future}

import org.apache.spark.api.plugin.PluginContext

import penstock.BadCall

/**
 * The way to the driver from wherever state is written.
 *
 * @param receive the driver's answer at once, called on the driver alone
 * @param isHere whether the driver is in this JVM
 */
final class WayToDriver(receive: Message => Answer, isHere: => Boolean = Writer.isDriver) {
  @volatile private var channel: Option[PluginContext] = None
  @volatile private var news: Option[Array[Byte] => Future[Array[Byte]]] = None

  def isDriver: Boolean = isHere

  /** Told to the driver and answered by it. */
  def ask(message: Message): Answer =
    if (isDriver) receive(message)
    else {
      val to = channel.getOrElse(throw noPlugin)
      JavaBytes.decode[Answer](to.ask(JavaBytes.encode(message)).asInstanceOf[Array[Byte]])
    }

  /** From another JVM than the driver's: answered when the answer is another than the known one. */
  private[commit] def askWhenOther(question: Message, known: Answer): Future[Answer] =
    news.getOrElse(throw noPlugin)(JavaBytes.encode(WhenOther(question, known)))
      .map(JavaBytes.decode[Answer])(ExecutionContext.parasitic)

  def executorReady(
      context: PluginContext,
      openQuestions: Option[Array[Byte] => Future[Array[Byte]]]): Unit = {
    channel = Some(context)
    news = openQuestions
  }

  private def noPlugin = new BadCall(
    "no_plugin",
    "an executor writes state for Penstock but has no way to tell the driver: set " +
      "spark.plugins=penstock.PenstockPlugin (penstock.attach does)")
}
