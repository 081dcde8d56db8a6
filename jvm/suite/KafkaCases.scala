package org.apache.spark.sql.penstock.admission

import org.apache.spark.sql.connector.read.streaming.{Offset, ReadLimit}
import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks, ManualClock}
import org.apache.spark.sql.kafka010.{KafkaMicroBatchStream, TopicOffsets}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.admission.Amount
import penstock.wire.{Offer, Share}

import Checks._

/** Kafka's source without a Kafka: rows counted by its offsets, and its limits under admission. */
object KafkaCases extends Cases {
  private val NoOptions = CaseInsensitiveStringMap.empty()
  private val NoLimit = ReadLimit.allAvailable()
  private val Start = TopicOffsets.of(("bids", 0) -> 100, ("bids", 1) -> 200, ("people", 0) -> 7)

  private def kafka(limit: ReadLimit = NoLimit): KafkaMicroBatchStream = {
    val source = new KafkaMicroBatchStream(limit)
    source.latest = TopicOffsets.of(("bids", 0) -> 400, ("bids", 1) -> 290, ("people", 0) -> 17)
    source
  }

  private def rows(start: Offset, end: Offset): Option[Long] =
    OfferedRows.between(kafka(), NoOptions)(start, end)

  private def dataOf(source: KafkaMicroBatchStream): AskedData = new AskedData(
    source, OfferedRows.between(source, NoOptions), OfferedRows.cutsBy(source), new ManualClock)

  check("rows_of_kafka_are_counted_by_the_offsets_of_all_its_partitions", once) { _ =>
    equal("an offset", Start.json(), """{"bids":{"0":100,"1":200},"people":{"0":7}}""")
    equal("up to a later one", rows(Start, kafka().latest), Some(400L))
    equal("back to an earlier one", rows(kafka().latest, Start), Some(-400L))
    equal("up to itself", rows(Start, Start), Some(0L))
    equal("from nowhere", rows(null, Start), None)
  }

  check("partitions_that_have_come_count_and_those_that_are_gone_do_not", once) { _ =>
    val grown = TopicOffsets(kafka().latest.ends + (("bids", 2) -> 50L))
    equal("with one more", rows(Start, grown), Some(450L))
    val shrunk = TopicOffsets(kafka().latest.ends - (("people", 0)) - (("bids", 1)))
    equal("with fewer", rows(Start, shrunk), Some(300L))
    equal("with none", rows(Start, TopicOffsets.of()), Some(0L))
  }

  check("kafka_is_offered_in_rows_and_takes_a_limit_of_rows", once) { _ =>
    val data = dataOf(kafka())
    equal("the offer", data.look(Start, NoLimit), Offer(Some(400), ageMs = Some(0.0), cutsBy = Offer.ByRows))
    val taken = data.take(Start, Share.UpTo(40), NoLimit)
    equal("a tenth of each partition", taken.end.json(), """{"bids":{"0":130,"1":209},"people":{"0":8}}""")
    equal("what was read", taken.read, Amount(rows = Some(40)))
    equal("what is left", taken.left, Amount(rows = Some(360)))
    equal("all", data.take(Start, Share.All, NoLimit), Taken(kafka().latest, Amount(Some(400)), Amount(Some(0))))
    equal("nothing", data.take(Start, Share.Nothing, NoLimit), Taken(null, Amount.Nothing, Amount(Some(400))))
  }

  check("of_kafka_no_more_is_offered_than_its_user_lets_a_batch_read", once) { _ =>
    val limit = ReadLimit.maxRows(15)
    val data = dataOf(kafka(limit))
    equal("the offer", data.look(Start, limit).rows, Some(15L))
    // Kafka gives each partition a whole row: 11.25, 3.4 and 0.4 rows are 11, 3 and 1.
    val taken = data.take(Start, Share.All, limit)
    equal("what was read", taken.read.rows, Some(15L))
    equal("what is left", taken.left.rows, Some(385L))
    val few = data.take(Start, Share.UpTo(2), limit)
    equal("what was read of two rows", few.read.rows, Some(3L))
    equal("with a larger limit", data.look(Start, ReadLimit.maxRows(1000)).rows, Some(400L))
  }

  check("a_batch_that_is_cut_does_not_wait_for_the_least_number_of_rows", once) { _ =>
    val least = ReadLimit.minRows(1000, 900000)
    val both = ReadLimit.compositeLimit(Array(least, ReadLimit.maxRows(40)))
    Seq(least -> 400L, both -> 40L).foreach { case (limit, rows) =>
      val data = dataOf(kafka(limit))
      equal("the offer", data.look(Start, limit).rows, Some(rows))
      equal("all of it", data.take(Start, Share.All, limit).read.rows, Some(rows))
      equal("some of it", data.take(Start, Share.UpTo(4), limit).read.rows, Some(5L))
    }
  }
}
