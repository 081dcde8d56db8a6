package org.apache.spark.sql.execution.streaming.state.contract

import scala.collection.mutable

import penstock.Clock

import Checks._

/** A clock that stands still until it is turned. */
final class ManualClock extends Clock {
  private var nowNs = 0L
  private var jumpedMs = 0L
  private val waiting = mutable.Buffer.empty[AnyRef]

  override def nanos: Long = synchronized(nowNs)

  override def wallMs: Long = steadyMs + synchronized(jumpedMs)

  override def steadyMs: Long = nanos / Clock.NsInMs

  override def sleepNs(ns: Long): Unit = {
    val end = nanos + ns
    val own = new Object
    own.synchronized {
      while (nanos < end) waitOn(own, end)
    }
  }

  override protected def waitOn(monitor: AnyRef, untilNs: Long): Unit = {
    // Turned before this is entered in the list, the clock would notify nobody.
    val isTime = synchronized {
      waiting += monitor
      nowNs >= untilNs
    }
    try if (!isTime) monitor.wait()
    finally synchronized {
      waiting.remove(waiting.indexWhere(_ eq monitor))
      ()
    }
  }

  /** Lets time pass, for all who wait. */
  def turn(ms: Long): Unit = {
    val monitors = synchronized {
      nowNs += ms * Clock.NsInMs
      waiting.toSeq
    }
    monitors.foreach(monitor => monitor.synchronized(monitor.notifyAll()))
  }

  /** Sets the wall clock forward, or back, while no time passes. */
  def jump(ms: Long): Unit = synchronized(jumpedMs += ms)

  /** Returns when some thread waits for time to pass. */
  def awaitSleeper(): Unit = eventually("a thread waits for the clock")(synchronized(waiting.nonEmpty))
}
