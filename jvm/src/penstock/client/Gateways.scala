// Scala because: tasks of one JVM share the connections to a server.
package penstock.client

import java.net.http.HttpClient
import java.time.Duration
import java.util.concurrent.ConcurrentHashMap

import penstock.Clock
import penstock.settings.Connection

/** The servers that this JVM talks to, one client for each, and the tokens they are told. */
final class Gateways(private[client] val clock: Clock) {
  private val open = new ConcurrentHashMap[Connection, Gateway]()
  @volatile private var tokenSource: String => Option[String] = _ => None

  /** Those to all servers. */
  val requests = new RequestTotals(clock)

  def size: Int = open.size

  /** One client per server: connections are kept and shared by all queries and tasks. */
  def to(connection: Connection): Gateway = open.computeIfAbsent(
    connection,
    c => {
      val builder = HttpClient
        .newBuilder()
        .version(HttpClient.Version.HTTP_1_1)
        .connectTimeout(Duration.ofSeconds(5))
      c.ca.foreach(path => builder.sslContext(Tls.trusting(path)))
      new Gateway(c, builder.build(), this)
    })

  /**
   * From now on a token that a server refuses is asked for anew: `source` says which one there is
   * instead, if there is another.
   */
  private[penstock] def renewTokensBy(source: String => Option[String]): Unit = tokenSource = source

  /** The token that is there instead of one that was refused. */
  private[penstock] def tokenInsteadOf(refused: String): Option[String] = tokenSource(refused)

  /**
   * Gives every client up. Java 17 cannot close one: it ends the threads and connections of a client
   * that nobody refers to, once its last request is answered.
   */
  private[penstock] def close(): Unit = {
    open.clear()
    tokenSource = _ => None
  }
}
