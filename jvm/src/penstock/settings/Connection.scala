// Scala because: it travels inside Spark's tasks to executors, as a Java object.
package penstock.settings

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.BadCall

/** Where the server is and how long to wait for it. Travels to executors inside tasks. */
final case class Connection(url: String, token: String, ca: Option[String], retrySeconds: Long)

object Connection {
  /** Options of one source or sink come before the session's settings. */
  def of(options: CaseInsensitiveStringMap): Connection = {
    val conf = SparkSession.active.conf
    from(key => Option(options.get(Keys.optionOf(key))).orElse(conf.getOption(key)))
      .getOrElse(
        throw new BadCall(
          "no_server",
          s"there is no Penstock server in this session: start it with penstock.session(), " +
            s"penstock.attach(builder), or set ${Keys.Url} and ${Keys.Token}"))
  }

  /** The connection of a Hadoop configuration made by Spark, which holds all SQL settings. */
  def of(conf: Configuration): Option[Connection] = from(key => Option(conf.get(key)))

  private def from(get: String => Option[String]): Option[Connection] = Keys.Url.find(get).map { url =>
    Connection(
      url.stripSuffix("/"),
      Keys.Token.value(get),
      Keys.TlsCa.find(get),
      Keys.RetrySeconds.value(get))
  }
}
