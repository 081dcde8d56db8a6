package org.apache.spark.sql.execution.streaming.state.contract

/** A provider with its settings; `queue` says whether the run has a release queue. */
final case class Variant(
    name: String,
    provider: String,
    families: Boolean = false,
    codec: String = "lz4",
    changelog: Boolean = false,
    format: Int = 1,
    mode: String = "full",
    queue: Boolean = false) {
  def isRocksDB: Boolean = !provider.startsWith("HDFS")
  def isOurs: Boolean = provider.startsWith("Penstock")
}
