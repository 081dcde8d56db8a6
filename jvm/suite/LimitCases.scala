package org.apache.spark.sql.execution.streaming.state.contract

import penstock.wire.LogLimits

import Checks._

/** State goes to the log in requests that it takes, and what no request takes does not. */
object LimitCases extends Cases {
  private val Stores = 800
  private val limits = LogLimits(entryBytes = 1 << 20, requestBytes = 64L << 20, requestFiles = 1000)

  /** A piece with a change log of these bytes, and its checksum. */
  private def piece(number: Int, bytes: Long): Seq[(String, Long)] = {
    val file = s"state/0/$number/left-keyToNumValues/17_0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0.changelog"
    Seq(file -> bytes, s"$file.crc" -> 100L)
  }

  private def requests(pieces: Seq[Seq[(String, Long)]]): Seq[Seq[Seq[(String, Long)]]] =
    if (pieces.isEmpty) Nil
    else {
      val first = limits.firstRequest(pieces)(identity)
      first +: requests(pieces.drop(first.size))
    }

  Seq("of_many_stores" -> 100L, "of_large_change_logs" -> (1L << 20)).foreach { case (name, bytes) =>
    check(s"a_batch_${name}_is_sent_in_requests_that_the_log_takes", once) { _ =>
      val pieces = (0 until Stores).map(piece(_, bytes))
      val sent = requests(pieces)
      equal("what is sent, in order", sent.flatten, pieces)
      sent.map(_.flatten).foreach { files =>
        holds(s"${files.size} files")(files.size <= limits.requestFiles)
        holds(s"${files.map(_._2).sum} bytes")(files.map(_._2).sum <= limits.requestBytes)
        holds("their names fit into 64 KiB")(files.map(_._1.length + 40).sum <= (64 << 10))
      }
      holds(s"they are few: ${sent.size}")(sent.size < Stores / 10)
    }
  }

  check("a_piece_goes_to_the_log_only_if_a_request_takes_all_of_it", once) { _ =>
    holds("one that fits")(limits.take(Seq(1L << 20, 100L)))
    holds("one file too large for an entry")(!limits.take(Seq((1L << 20) + 1, 100L)))
    val tight = LogLimits(entryBytes = 1000, requestBytes = 1500, requestFiles = 2)
    holds("more bytes than a request")(!tight.take(Seq(1000L, 501L)))
    holds("more files than a request")(!tight.take(Seq(1L, 1L, 1L)))
    val wide = LogLimits(entryBytes = 1L << 30, requestBytes = 1L << 30, requestFiles = 1000)
    holds("the log is for small entries")(!wide.take(Seq(9L << 20)))
  }
}
