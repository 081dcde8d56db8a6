// Scala because: Spark makes the state store provider of each task by the name of a JVM class.
package org.apache.spark.sql.execution.streaming.state

import java.io.File

import org.apache.hadoop.conf.Configuration

/**
 * Spark's RocksDB provider with the commit taken off the task's path. Files and formats are
 * Spark's, so that Spark's own provider and its state reader read what this one writes.
 *
 * In Spark's package because `RocksDBStateStoreProvider` is visible there only.
 */
final class PenstockStateStoreProvider extends RocksDBStateStoreProvider {
  override protected def createRocksDB(
      dfsRootDir: String,
      conf: RocksDBConf,
      localRootDir: File,
      hadoopConf: Configuration,
      loggingId: String,
      useColumnFamilies: Boolean,
      enableStateStoreCheckpointIds: Boolean,
      partitionId: Int,
      eventForwarder: Option[RocksDBEventForwarder],
      uniqueId: Option[String]): RocksDB = new AsyncRocksDB(
    dfsRootDir,
    conf,
    localRootDir,
    hadoopConf,
    loggingId,
    useColumnFamilies,
    enableStateStoreCheckpointIds,
    partitionId,
    eventForwarder,
    uniqueId)
}
