// Scala because: a task's writes, removals and scans of a state store each call it, row by row.
package org.apache.spark.sql.execution.streaming.state

import java.util.Arrays

import penstock.eviction.{LeastTime, TimeColumn, TimeReader}

/** What is known of the event times in one family of a store that is open. */
private[state] final class FamilyTimes(val column: TimeColumn, isEmpty: Boolean) {
  private val reader = new TimeReader(column)
  private val least = new LeastTime
  private var handedOut: Array[Byte] = null
  least.opened(isEmpty)

  def put(key: Array[Byte], value: Array[Byte]): Unit =
    least.put(reader.of(if (column.inValue) value else key))

  def forgotten(): Unit = least.forgotten()

  def maySkip(untilUs: Long): Boolean = least.maySkip(untilUs)

  def begun(untilUs: Long): Unit = {
    handedOut = null
    least.begun(untilUs)
  }

  /** Whether the scan is to be given the row it has come to. */
  def isExpired(rows: StoredRows): Boolean = {
    val isGiven = least.read(timeOf(rows))
    if (isGiven) handedOut = rows.key
    isGiven
  }

  /** Only the row that the scan was given last counts: an operator removes it before it goes on. */
  def removed(key: Array[Byte]): Unit = if (handedOut != null && Arrays.equals(handedOut, key)) {
    handedOut = null
    least.removed()
  }

  def ended(): Unit = least.ended()

  /** Reads rows for their times; false as soon as one is expired. The rows are closed. */
  def measure(rows: StoredRows, untilUs: Long): Boolean =
    try {
      var leastUs = LeastTime.NoRowUs
      while (rows.isValid && leastUs > untilUs) {
        leastUs = math.min(leastUs, timeOf(rows))
        rows.advance()
      }
      val isKept = leastUs > untilUs
      if (isKept) least.measured(leastUs)
      isKept
    } finally rows.close()

  private def timeOf(rows: StoredRows): Long = reader.of(if (column.inValue) rows.value else rows.key)
}
