// Scala because: the plug-in finds the token in the driver's JVM, before any Python of the job runs.
package penstock.plugin

import java.lang.management.ManagementFactory
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.SparkConf
import org.apache.spark.internal.Logging

import penstock.client.Gateways
import penstock.settings.{Connection, Keys}

/** The token of the job: among Spark's settings, for executors, which have no other way to it. */
private[penstock] object DriverToken extends Logging {

  /** Executors get Spark's settings from the driver, and neither its environment nor its files. */
  def keep(conf: SparkConf, gateways: Gateways): Unit = if (conf.contains(Keys.Url.name)) {
    val isSet = conf.getOption(Keys.Token.name).exists(_.nonEmpty)
    if (isSet) warningOf(commandLine).foreach(logWarning(_))
    val token = Connection.tokenOf(key => conf.getOption(key))
    conf.set(Keys.Token.name, token)
    for (file <- Keys.TokenFile.find(key => conf.getOption(key)) if !isSet) {
      gateways.renewTokensBy(renewed(token, Connection.tokenIn(file)))
    }
  }

  /**
   * A token that was in a file, and that a server refuses, is looked for in the file again. Any other
   * is none of the file's: another server is not told what is in it.
   */
  private[penstock] def renewed(first: String, inFile: => String): String => Option[String] = {
    val known = ConcurrentHashMap.newKeySet[String]()
    known.add(first)
    refused =>
      if (!known.contains(refused)) None
      else {
        val fresh = Try(inFile).toOption.filter(token => token.nonEmpty && token != refused)
        fresh.foreach(known.add)
        fresh
      }
  }

  /** What is wrong with a command line that has the token. */
  private[penstock] def warningOf(commandLine: String): Option[String] =
    Option.when(commandLine.contains(s"${Keys.Token.name}=")) {
      s"${Keys.Token} is on the command line of this JVM, where every user of the machine can read " +
        s"it: give it in the variable PENSTOCK_TOKEN, or name a file that has it with ${Keys.TokenFile}"
    }

  /** As it was started: options of the builder of a PySpark session are there, too. */
  private def commandLine: String = {
    val ofJvm = ManagementFactory.getRuntimeMXBean.getInputArguments.asScala
    (ofJvm :+ sys.props.getOrElse("sun.java.command", "")).mkString(" ")
  }
}
