// Scala because: it changes the bytes of offsets/N between Spark and its file manager.
package penstock.checkpoint

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.execution.streaming.state.PenstockStateStoreProvider

/**
 * The offset log names the class that keeps the state, and that name overrides the session's when
 * the query is started again. What is written always names Spark's own class, so that Spark can go
 * on without us; what is read names ours, if the session asks for it.
 */
private[checkpoint] object ProviderName {
  val Key = "spark.sql.streaming.stateStore.providerClass"
  val Ours: String = classOf[PenstockStateStoreProvider].getName
  val Stock = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
  val SparkDefault =
    "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

  private val Named = (java.util.regex.Pattern.quote(s""""$Key":"""") + "([^\"]+)\"").r

  def isRocksDB(name: String): Boolean = name == Ours || name == Stock

  def onWrite(offsets: Array[Byte]): Array[Byte] = rename(offsets, Ours, Stock)

  def onRead(offsets: Array[Byte], conf: Configuration): Array[Byte] =
    if (conf.get(Key) == Ours) rename(offsets, Stock, Ours) else offsets

  /** The provider that offsets name. */
  def in(offsets: Array[Byte]): Option[String] =
    Named.findFirstMatchIn(new String(offsets, UTF_8)).map(_.group(1))

  private def rename(offsets: Array[Byte], from: String, to: String): Array[Byte] = {
    val text = new String(offsets, UTF_8)
    val quoted = s""""$Key":"$from""""
    if (text.contains(quoted)) text.replace(quoted, s""""$Key":"$to"""").getBytes(UTF_8)
    else offsets
  }
}
