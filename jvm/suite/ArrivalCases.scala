package org.apache.spark.sql.execution.streaming.state.contract

import java.net.InetSocketAddress
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import com.sun.net.httpserver.{HttpExchange, HttpServer}

import penstock.client.Gateway
import penstock.commit.PieceDurable
import penstock.commit.channel.{Durable, MadeDurable}
import penstock.wire.FileEntry

import Checks._

/** A load of state that another executor has written. */
object ArrivalCases extends Cases {
  private val Id = "0a1b2c3d"
  private val OtherId = "4e5f6071"
  private val Entry = 7L
  private val Bytes = "what the log has".getBytes("UTF-8")
  private val File = s"state/0/0/1_$Id.changelog"

  /** The one route of a server that a load needs; the paths that were asked for. */
  private final class FilesServer extends AutoCloseable {
    val asked = new ConcurrentLinkedQueue[String]()
    private val server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0)
    server.createContext("/", (exchange: HttpExchange) => {
      asked.add(exchange.getRequestURI.getPath)
      exchange.getResponseHeaders.add(Gateway.ProtocolHeader, Gateway.ProtocolVersion)
      exchange.sendResponseHeaders(200, Bytes.length.toLong)
      exchange.getResponseBody.write(Bytes)
      exchange.close()
    })
    server.start()

    def url: String = s"http://127.0.0.1:${server.getAddress.getPort}"

    override def close(): Unit = server.stop(0)
  }

  /** Another executor's write of a piece of batch 0 is in the log, with these files. */
  private def madeDurable(rig: StoreRig, piece: String, files: FileEntry*): Unit = {
    val durable = Durable(PieceDurable(0, piece, "another executor", 1), files, Map.empty)
    rig.queue.receive(MadeDurable(rig.queue.run, Seq(durable)))
    ()
  }

  /** Batch 0 is computed and lacks these pieces; nothing of it gets to the location. */
  private def withBatch(rig: StoreRig, pieces: String*)(act: FilesServer => Unit): Unit = {
    val server = new FilesServer
    try {
      rig.restartWith(server = Some(server.url))
      rig.begin(0)
      eventually("the offsets are there")(rig.location.has("offsets/0"))
      rig.location.hold(0)
      rig.queue.commitWritten(0, Array.emptyByteArray, pieces.toSet)
      act(server)
    } finally server.close()
  }

  check("a_load_reads_what_the_log_has_while_the_location_lacks_it", once) { rig =>
    withBatch(rig, Id) { server =>
      val load = aside(rig.open(File))
      eventually("the load waits")(load.thread.getState == Thread.State.TIMED_WAITING)
      holds("nothing was read before it was durable")(server.asked.isEmpty)
      madeDurable(rig, Id, FileEntry(File, Entry))
      equal("the file", new String(load.join(), "UTF-8"), new String(Bytes, "UTF-8"))
      equal("what was read", server.asked.asScala.toSeq, Seq(s"/v1/queries/query/files/$Entry"))
      holds("the location lacks it")(!rig.location.has(File))
    }
  }

  check("a_load_waits_for_the_marker_of_what_the_log_may_still_lose", once) { rig =>
    withBatch(rig, Id, OtherId) { server =>
      madeDurable(rig, Id, FileEntry(File, Entry, start = Some(5L)))
      val load = aside(rig.open(File))
      eventually("the load waits")(load.thread.getState == Thread.State.TIMED_WAITING)
      holds("nothing was read that the log may lose")(server.asked.isEmpty)
      madeDurable(rig, OtherId, FileEntry(File.replace(Id, OtherId), Entry + 1))
      equal("the file", new String(load.join(), "UTF-8"), new String(Bytes, "UTF-8"))
      equal("what was read", server.asked.asScala.toSeq, Seq(s"/v1/queries/query/files/$Entry"))
    }
  }

  check("a_load_reads_the_place_that_the_marker_names_though_the_piece_was_appended_again", once) {
    rig =>
      withBatch(rig, Id) { server =>
        madeDurable(rig, Id, FileEntry(File, Entry, start = Some(5L)))
        rig.open(File)
        // Nobody syncs this one, and after a restart the log may have another file there.
        madeDurable(rig, Id, FileEntry(File, Entry + 1, start = Some(5L)))
        rig.open(File)
        val place = s"/v1/queries/query/files/$Entry"
        equal("what was read", server.asked.asScala.toSeq, Seq(place, place))
      }
  }
}
