// Scala because: it sets how the RocksDB of a task reads its files, and stands in for a slow disk.
package org.apache.spark.sql.execution.streaming.state

import java.io.File
import java.nio.file.{Files, StandardOpenOption}

import scala.util.control.NonFatal

import com.sun.nio.file.ExtendedOpenOption
import org.apache.spark.sql.penstock.SparkMembers
import org.rocksdb.{Options, ReadOptions, ReadTier, RocksDBException, Status}

import penstock.BadCall
import penstock.commit.jvm.JvmResources
import penstock.settings.Keys

/** Reads past the operating system's cache. */
private[state] object DirectReads {
  def enable(options: Options, folder: File, isPossible: File => Boolean = isPossibleIn): Unit = {
    if (!isPossible(folder)) {
      throw new BadCall(
        "no_direct_reads",
        s"${Keys.PrefetchReads} is direct, and the file system of $folder has no direct " +
          "reads; set spark.local.dir to a folder on a disk, or the reads to spark")
    }
    options.setUseDirectReads(true)
    ()
  }

  private[state] def isPossibleIn(folder: File): Boolean = {
    Files.createDirectories(folder.toPath)
    val file = Files.createTempFile(folder.toPath, "direct", "")
    try {
      Files.newByteChannel(file, StandardOpenOption.READ, ExtendedOpenOption.DIRECT).close()
      true
    } catch { case NonFatal(_) => false }
    finally Files.delete(file)
  }
}

/**
 * A declared delay for each read that needs a block which is not in memory: RocksDB is asked with
 * what it has there, and if that is not enough, the reader pauses before it reads. Refused where
 * this version of Spark lacks a field for it: what is measured without the delay would be wrong.
 */
private[state] final class SlowReads(db: RocksDB, useColumnFamilies: Boolean) {
  private val options = new ReadOptions().setReadTier(ReadTier.BLOCK_CACHE_TIER)

  def pause(family: String, key: Array[Byte]): Unit =
    try {
      SparkMembers.NativeStore.of(db).get(options, storedKey(family, key))
      ()
    } catch {
      case e: RocksDBException if isIncomplete(e) =>
        val pauseMs = JvmResources.here.declaredDelay.pauseMs
        if (pauseMs > 0) JvmResources.here.clock.sleepMs(pauseMs)
    }

  def close(): Unit = options.close()

  private def isIncomplete(e: RocksDBException): Boolean =
    e.getStatus != null && e.getStatus.getCode == Status.Code.Incomplete

  private def storedKey(family: String, key: Array[Byte]): Array[Byte] =
    if (!useColumnFamilies) key
    else {
      val info = SparkMembers.ColumnFamilies.of(db).get(family)
      RocksDBStateStoreProvider.encodeStateRowWithPrefix(key, info.cfId)
    }
}
