// Scala because: it travels inside Spark's tasks to executors, as a Java object.
package penstock.settings

import java.io.IOException
import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.BadCall

/** Where the server is and how long to wait for it. Travels to executors inside tasks. */
final case class Connection(url: String, token: String, ca: Option[String], retrySeconds: Long)

object Connection {
  /** Options of one source or sink come before the session's settings. */
  def of(options: CaseInsensitiveStringMap): Connection = find(options).getOrElse(
    throw new BadCall(
      "no_server",
      s"there is no Penstock server in this session: start it with penstock.session(), " +
        s"penstock.attach(builder), or set ${Keys.Url} and ${Keys.Token}"))

  /** The same for a source of a query with a deadline or a policy, which may read no stream of ours. */
  def forTerms(options: CaseInsensitiveStringMap): Connection = find(options).getOrElse(
    throw new BadCall(
      "no_server",
      "a deadline or a policy is kept by a Penstock server, which says when a batch begins, and " +
        "this session has none: start it with penstock.session(), penstock.attach(builder), or " +
        s"set ${Keys.Url} and ${Keys.Token}"))

  private def find(options: CaseInsensitiveStringMap): Option[Connection] = {
    val conf = SparkSession.active.conf
    from(key => Option(options.get(Keys.optionOf(key))).orElse(conf.getOption(key)))
  }

  /** The connection of a Hadoop configuration made by Spark, which holds all SQL settings. */
  def of(conf: Configuration): Option[Connection] = from(key => Option(conf.get(key)))

  /**
   * The token that is set, else the first word of a file, else that of the environment: no command
   * line has it then. The driver puts what it finds among Spark's settings for the executors.
   */
  def tokenOf(get: String => Option[String]): String = Keys.Token
    .find(get)
    .filter(_.nonEmpty)
    .orElse(Keys.TokenFile.find(get).map(tokenIn))
    .orElse(TokenVariables.flatMap(name => sys.env.get(name)).find(_.nonEmpty))
    .getOrElse("")

  private val TokenVariables = Seq("PENSTOCK_SESSION_TOKEN", "PENSTOCK_TOKEN")

  /** The first word of a file of tokens. */
  def tokenIn(file: String): String =
    try {
      val lines = Files.readAllLines(Paths.get(file)).asScala.map(_.takeWhile(_ != '#').trim)
      lines.find(_.nonEmpty).map(_.split("\\s+").head).getOrElse("")
    } catch {
      case e: IOException =>
        throw new BadCall("bad_setting", s"${Keys.TokenFile} is $file, which cannot be read ($e)")
    }

  private def from(get: String => Option[String]): Option[Connection] = Keys.Url.find(get).map { url =>
    Connection(
      url.stripSuffix("/"),
      tokenOf(get),
      Keys.TlsCa.find(get),
      Keys.RetrySeconds.value(get))
  }
}
