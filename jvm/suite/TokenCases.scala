package penstock.plugin

import java.net.InetSocketAddress
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicReference

import scala.jdk.CollectionConverters._

import com.sun.net.httpserver.{HttpExchange, HttpServer}

import org.apache.spark.sql.execution.streaming.state.contract.Cases
import org.apache.spark.sql.execution.streaming.state.contract.Checks._

import penstock.Clock
import penstock.client.{Gateway, Gateways}
import penstock.settings.Connection

/** The token of a job: where it may be, and that it can be another one while the job runs. */
object TokenCases extends Cases {
  private val EndMs = 60000L
  private val Refusal =
    """{"error": {"code": "unauthorized", "act": "change the call", "message": "another token"}}"""

  /** Takes one token, and remembers all that it was sent. */
  private final class OneTokenServer(taken: String) extends AutoCloseable {
    val gateways = new Gateways(Clock.System)
    private val queue = new ConcurrentLinkedQueue[String]()
    private val server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0)
    server.createContext("/", (exchange: HttpExchange) => {
      val token = exchange.getRequestHeaders.getFirst("Authorization").stripPrefix("Bearer ")
      queue.add(token)
      val body = (if (token == taken) "{}" else Refusal).getBytes("UTF-8")
      exchange.getResponseHeaders.add(Gateway.ProtocolHeader, Gateway.ProtocolVersion)
      exchange.sendResponseHeaders(if (token == taken) 200 else 401, body.length.toLong)
      exchange.getResponseBody.write(body)
      exchange.close()
    })
    server.start()

    def sent: Seq[String] = queue.asScala.toSeq

    def gateway(token: String): Gateway =
      gateways.to(Connection(s"http://127.0.0.1:${server.getAddress.getPort}", token, None, 5))

    override def close(): Unit = {
      server.stop(0)
      gateways.close()
    }
  }

  check("a_token_that_is_refused_is_looked_for_again_in_its_file", once) { _ =>
    val server = new OneTokenServer("new")
    try {
      val inFile = new AtomicReference("old")
      server.gateways.renewTokensBy(DriverToken.renewed("old", inFile.get))
      val gateway = server.gateway("old")
      fails("a request with the old token", "unauthorized")(gateway.getJson("/server"))
      equal("what was sent", server.sent, Seq("old"))
      inFile.set("new")
      gateway.getJson("/server")
      gateway.getJson("/server")
      equal("what was sent", server.sent, Seq("old", "old", "new", "new"))
    } finally server.close()
  }

  check("a_server_with_another_token_is_not_sent_the_one_of_the_file", once) { _ =>
    val server = new OneTokenServer("new")
    try {
      server.gateways.renewTokensBy(DriverToken.renewed("old", "new"))
      fails("a request with a token that was in no file", "unauthorized") {
        server.gateway("of another server").getJson("/server")
      }
      equal("what was sent", server.sent, Seq("of another server"))
    } finally server.close()
  }

  check("a_file_that_cannot_be_read_leaves_the_refusal_as_it_is", once) { _ =>
    val server = new OneTokenServer("new")
    try {
      server.gateways.renewTokensBy(DriverToken.renewed("old", Connection.tokenIn("/there/is/no/such/file")))
      fails("a request", "unauthorized")(server.gateway("old").getJson("/server"))
    } finally server.close()
  }

  check("a_token_on_a_command_line_is_warned_of_with_what_to_use_instead", once) { _ =>
    val warning = DriverToken.warningOf("SparkSubmit --conf spark.penstock.token=secret pyspark-shell")
    Seq("PENSTOCK_TOKEN", "spark.penstock.tokenFile").foreach { way =>
      holds(s"$way is named")(warning.exists(_.contains(way)))
    }
    holds("the token is not repeated")(!warning.exists(_.contains("secret")))
    equal("a line without it", DriverToken.warningOf("--conf spark.penstock.tokenFile=token"), None)
  }

  check("clients_that_are_given_up_end_with_their_threads", once) { _ =>
    def selectors: Set[Thread] =
      Thread.getAllStackTraces.keySet.asScala.filter(_.getName.endsWith("SelectorManager")).toSet
    val before = selectors
    val server = new OneTokenServer("new")
    try {
      server.gateway("new").getJson("/server")
      equal("clients", server.gateways.size, 1)
      holds("a client has a thread")((selectors -- before).nonEmpty)
    } finally server.close()
    equal("clients", server.gateways.size, 0)
    val end = Clock.System.deadline(EndMs)
    while ((selectors -- before).nonEmpty && !end.isOver) {
      System.gc()
      Clock.System.sleepMs(50)
    }
    equal("threads of clients", selectors -- before, Set.empty[Thread])
  }
}
