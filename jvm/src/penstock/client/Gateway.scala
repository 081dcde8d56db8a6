// Scala because: tasks read and append rows over HTTP on executors, which run no Python of ours.
package penstock.client

import java.io.IOException
import java.net.URI
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.net.http.HttpRequest.BodyPublishers
import java.time.Duration
import java.util.concurrent.CompletableFuture

import scala.annotation.tailrec

import com.fasterxml.jackson.databind.JsonNode

import penstock.{BadCall, Backoff, Bug, Damaged, Fenced, PenstockException, TryAgain}
import penstock.settings.Connection
import penstock.wire.Json

/**
 * The server's HTTP interface (docs/http.md), one method per route the plug-in uses.
 *
 * Every request here may be sent twice without harm, so an answer that did not come is asked for
 * again, with back-off, for `retrySeconds`. Interrupting the calling thread ends a call at once:
 * that is how `StreamingQuery.stop()` gets through a held request.
 */
final class Gateway private[client] (connection: Connection, http: HttpClient, gateways: Gateways) {
  import Gateway._

  @volatile private var token = connection.token

  def url: String = connection.url

  def streams: StreamRoutes = new StreamRoutes(this)

  def queries: QueryRoutes = new QueryRoutes(this)

  def admission: AdmissionRoutes = new AdmissionRoutes(this)

  def getJson(path: String): JsonNode = json(request(path).GET())

  def postJson(path: String, body: JsonNode): JsonNode = json(
    request(path)
      .header("Content-Type", "application/json")
      .POST(BodyPublishers.ofByteArray(Json.writeValueAsBytes(body))))

  def putJson(path: String, body: JsonNode): JsonNode = json(
    request(path)
      .header("Content-Type", "application/json")
      .PUT(BodyPublishers.ofByteArray(Json.writeValueAsBytes(body))))

  def postArrow(path: String, body: Array[Byte]): JsonNode = json(
    request(path).header("Content-Type", ArrowType).POST(BodyPublishers.ofByteArray(body)))

  def postBytes(path: String, body: Array[Byte]): JsonNode = json(
    request(path).header("Content-Type", BytesType).POST(BodyPublishers.ofByteArray(body)))

  def getBytes(path: String): Array[Byte] = send(request(path).GET()).body()

  /** Starts a GET; `settle` waits for it, and repeats it if it failed for a passing reason. */
  def startFetch(path: String): CompletableFuture[HttpResponse[Array[Byte]]] =
    gateways.requests.counted(
      http.sendAsync(authorized(request(path).header("Accept", ArrowType).GET(), token), bytes))

  def settle(
      path: String,
      started: CompletableFuture[HttpResponse[Array[Byte]]]): HttpResponse[Array[Byte]] = {
    val first =
      try Right(started.get())
      catch { case e: java.util.concurrent.ExecutionException => Left(e.getCause) }
    first match {
      case Right(answer) if answer.statusCode() < 400 => sameProtocol(answer)
      case _ => send(request(path).header("Accept", ArrowType).GET())
    }
  }

  private def request(path: String): HttpRequest.Builder = HttpRequest
    .newBuilder(URI.create(connection.url + "/v1" + path))
    .timeout(AnswerTimeout)
    .header(ProtocolHeader, ProtocolVersion)

  private def json(builder: HttpRequest.Builder): JsonNode = Json.readTree(send(builder).body())

  private def authorized(builder: HttpRequest.Builder, bearer: String): HttpRequest =
    builder.setHeader("Authorization", "Bearer " + bearer).build()

  private def send(builder: HttpRequest.Builder): HttpResponse[Array[Byte]] = {
    val end = gateways.clock.deadline(connection.retrySeconds * 1000L)
    val backoff = new Backoff(gateways.clock, PauseMsFirst, PauseMsMax)

    @tailrec def attempt(): HttpResponse[Array[Byte]] = {
      val used = token
      val sent = authorized(builder, used)
      val outcome =
        try {
          val answer = gateways.requests.timed(http.send(sent, bytes))
          if (answer.statusCode() < 400) Right(sameProtocol(answer)) else Left(errorOf(answer))
        } catch {
          case e: IOException => Left(unreachable(e))
        }
      outcome match {
        case Right(answer) => answer
        case Left(refused: BadCall) if refused.code == Unauthorized && !end.isOver && isRenewed(used) =>
          attempt()
        case Left(_: TryAgain) if !end.isOver =>
          backoff.pause()
          attempt()
        case Left(error) => throw error
      }
    }
    attempt()
  }

  /** Whether there is another token than the one that was refused; it is used from now on. */
  private def isRenewed(refused: String): Boolean = {
    if (token == refused) gateways.tokenInsteadOf(refused).foreach(fresh => token = fresh)
    token != refused
  }

  /** A server of another protocol may answer and mean something else, so nothing of it is used. */
  private def sameProtocol(answer: HttpResponse[Array[Byte]]): HttpResponse[Array[Byte]] = {
    val served = answer.headers().firstValue(ProtocolHeader).orElse("1, or names none")
    if (served != ProtocolVersion) {
      throw new BadCall(
        "wrong_protocol",
        s"the server at ${connection.url} is of protocol $served, and this plug-in follows " +
          s"protocol $ProtocolVersion; use the server and the plug-in of one version")
    }
    answer
  }

  private def unreachable(cause: IOException): TryAgain = new TryAgain(
    "unreachable",
    s"the Penstock server at ${connection.url} does not answer (${describe(cause)}) and was " +
      s"asked for ${connection.retrySeconds} s; start it again on the same data folder and " +
      "restart the query",
    cause)
}

object Gateway {
  val ArrowType = "application/vnd.apache.arrow.stream"
  val BytesType = "application/octet-stream"
  val CursorHeader = "Penstock-Cursor"

  /** Up to where a page of rows, and those behind its cursor, go. */
  val PositionHeader = "Penstock-Position"
  val ProtocolHeader = "Penstock-Protocol"

  /** Of PROTOCOL.md, as in penstock/model/protocol.py. A server of another one refuses. */
  val ProtocolVersion = "6"

  private val Unauthorized = "unauthorized"
  private val AnswerTimeout = Duration.ofSeconds(60)
  private val PauseMsFirst = 20L
  private val PauseMsMax = 1000L
  private val bytes = HttpResponse.BodyHandlers.ofByteArray()

  private[client] def errorOf(answer: HttpResponse[Array[Byte]]): PenstockException = {
    val error =
      try Json.readTree(answer.body()).path("error")
      catch { case _: IOException => Json.createObjectNode() }
    val code = error.path("code").asText("bug")
    val message = error.path("message").asText(s"the server answered ${answer.statusCode()}")
    error.path("act").asText() match {
      case "retry" => new TryAgain(code, message)
      case "change the call" => new BadCall(code, message)
      case "stop" => new Fenced(message)
      case "restore the data" => new Damaged(code, message)
      case _ => new Bug(code, message)
    }
  }

  private def describe(e: Throwable): String =
    Option(e.getMessage).getOrElse(e.getClass.getSimpleName)
}
