package org.apache.spark.sql.execution.streaming.state.contract

import scala.util.control.NonFatal

/** What a case found to be otherwise than the contract says. */
final class Broken(message: String) extends RuntimeException(message)

object Checks {
  def equal[A](subject: String, got: A, expected: A): Unit =
    if (got != expected) throw new Broken(s"$subject is $got, expected $expected")

  def holds(claim: String)(condition: => Boolean): Unit =
    if (!condition) throw new Broken(s"it does not hold that $claim")

  /** The body must throw; returns what it threw, or one of its causes, that has the words. */
  def fails(act: String, words: String*)(body: => Any): Throwable = {
    val thrown =
      try {
        body
        None
      } catch { case NonFatal(e) => Some(e) }
    val error = thrown.getOrElse(throw new Broken(s"$act did not fail"))
    val messages = causes(error).map(e => s"${e.getClass.getName}: ${e.getMessage}")
    words.foreach { word =>
      if (!messages.exists(_.contains(word))) {
        throw new Broken(s"$act failed, but not with '$word': ${messages.mkString(" <- ")}")
      }
    }
    error
  }

  /** Returns when the condition holds; the limit is only there to end a test that is broken. */
  def eventually(claim: String, limitMs: Long = 120000)(condition: => Boolean): Unit = {
    val end = System.nanoTime() + limitMs * 1000000
    while (!condition) {
      if (System.nanoTime() > end) {
        throw new Broken(s"for $limitMs ms it did not come to be that $claim")
      }
      Thread.sleep(5)
    }
  }

  /** The body must be over by then. */
  def within[A](act: String, ms: Long)(body: => A): A = {
    val start = System.nanoTime()
    val result = body
    val tookMs = (System.nanoTime() - start) / 1000000
    if (tookMs > ms) throw new Broken(s"$act took $tookMs ms, more than $ms")
    result
  }

  /** Runs the body on a thread of its own; `join` passes on what it threw. */
  def aside[A](body: => A): Aside[A] = new Aside(() => body)

  private def causes(e: Throwable): Seq[Throwable] =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(10).toSeq
}

final class Aside[A](body: () => A) {
  @volatile private var result: Option[Either[Throwable, A]] = None
  val thread = new Thread(
    () => result = Some(try Right(body()) catch { case e: Throwable => Left(e) }),
    "suite-aside")
  thread.setDaemon(true)
  thread.start()

  def isOver: Boolean = result.isDefined

  def join(limitMs: Long = 120000): A = {
    thread.join(limitMs)
    result
      .getOrElse(throw new Broken(s"after $limitMs ms a thread still stands at ${at.mkString(" < ")}"))
      .fold(e => throw e, identity)
  }

  private def at: Seq[String] =
    thread.getStackTrace.toSeq.map(f => s"${f.getClassName}.${f.getMethodName}").take(12)
}
