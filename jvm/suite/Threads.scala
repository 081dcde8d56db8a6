package org.apache.spark.sql.execution.streaming.state.contract

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import Checks._

/** Threads of the plug-in, by what they do. */
object Threads {

  /** One of a pool of the plug-in that is in the middle of a method. */
  def in(pool: String, method: String): Option[Thread] =
    Thread.getAllStackTraces.asScala.collectFirst {
      case (thread, at) if thread.getName.matches(s"penstock-$pool(-.+)?-\\d+") &&
          at.exists(_.getMethodName == method) =>
        thread
    }

  /** The names of all that the plug-in has started. */
  def ofPlugin: Set[String] =
    Thread.getAllStackTraces.keySet.asScala.map(_.getName).filter(_.startsWith("penstock-")).toSet

  /** Some thread, whoever started it, is in the middle of a method of a class. */
  def isAnyIn(owner: String, method: String): Boolean =
    Thread.getAllStackTraces.values.asScala.exists(_.exists { at =>
      at.getClassName == owner && at.getMethodName == method
    })

  /** Waits for one to come there, and ends it. */
  def kill(pool: String, method: String): Unit = {
    var threadInMethod = Option.empty[Thread]
    eventually(s"a thread of $pool is in $method") {
      threadInMethod = in(pool, method)
      threadInMethod.isDefined
    }
    val thread = threadInMethod.get
    thread.interrupt()
    thread.join(60000)
    holds(s"$thread is dead")(!thread.isAlive)
  }
}

/** Points of the plug-in at which a thread stands still, in batch 1, while they are held. */
object Points {
  private lazy val go: Path =
    Path.of(sys.env("PENSTOCK_FAILPOINT").split(":", 2)(1)).resolve("go")

  def hold(): Unit = Files.delete(go)

  def letGo(): Unit = {
    Files.createDirectories(go.getParent)
    if (!Files.exists(go)) Files.createFile(go)
    ()
  }

  /** The body runs while they are held. */
  def held(body: => Unit): Unit = {
    hold()
    try body
    finally letGo()
  }
}
