package org.apache.spark.sql.execution.streaming.state.contract

import java.nio.file.{Files, Path}
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._
import scala.util.Using

import penstock.commit.driver.{Named, PlacedFiles, Store}

/**
 * Puts offsets and commits of a run into the location, and looks whether all that should have been
 * there before them is: the offsets of a batch come after the commit of the one before, and its
 * commit after its state. What was not in order is kept in `wrong`.
 */
final class LocationStore(root: Path, first: Long) extends Store {
  val wrong = new ConcurrentLinkedQueue[String]()
  private var heldFrom = Long.MaxValue

  /** From now on nothing of `batch` and of later ones comes here. */
  def hold(batch: Long): Unit = synchronized { heldFrom = batch }

  def letGo(): Unit = synchronized {
    heldFrom = Long.MaxValue
    notifyAll()
  }

  private def awaitLetGo(batch: Long): Unit = synchronized {
    while (batch >= heldFrom) wait()
  }

  override def name: String = s"the test's location $root"

  override def putOffsets(batch: Long, bytes: Array[Byte]): Unit = {
    awaitLetGo(batch)
    if (batch > first && !has(s"commits/${batch - 1}")) wrong.add(s"offsets/$batch came too early")
    write(s"offsets/$batch", bytes)
  }

  /** The bytes name what the commit needs, a file name's beginning per line. */
  override def putCommit(batch: Long, bytes: Array[Byte]): Unit = {
    new String(bytes, "UTF-8").linesIterator.filter(_.nonEmpty).foreach { needed =>
      val folder = root.resolve(needed).getParent
      val start = root.resolve(needed).getFileName.toString
      if (!names(folder).exists(_.startsWith(start))) {
        wrong.add(s"commits/$batch came before its state, $needed")
      }
    }
    write(s"commits/$batch", bytes)
  }

  /** The log is elsewhere, and takes every marker. */
  override def putMarker(batch: Long, commit: Array[Byte], named: Named): Unit = ()

  /** Nothing of a batch that the log has comes here, and what is held is waited for. */
  override def copy(batch: Long, placed: PlacedFiles): Unit = awaitLetGo(batch)

  override def delete(path: String): Unit = Files.delete(root.resolve(path))

  override def forget(batch: Long): Unit = ()

  def has(path: String): Boolean = Files.exists(root.resolve(path))

  private def names(folder: Path): Seq[String] =
    if (!Files.isDirectory(folder)) Nil
    else Using.resource(Files.list(folder))(_.iterator.asScala.map(_.getFileName.toString).toSeq)

  private def write(path: String, bytes: Array[Byte]): Unit = {
    val file = root.resolve(path)
    Files.createDirectories(file.getParent)
    Files.write(file, bytes)
    ()
  }
}
