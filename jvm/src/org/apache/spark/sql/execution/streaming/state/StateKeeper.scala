// Scala because: rules of Spark's planner ask it on the thread that plans a batch.
package org.apache.spark.sql.execution.streaming.state

import org.apache.spark.sql.internal.SQLConf

/** Who keeps the state of the query that is planned, and in which encoding. */
private[sql] object StateKeeper {
  private val BinaryRows = StateStoreEncoding.UnsafeRow.toString

  /** Why stores of the query are none that read Spark's binary rows for us, if they are not. */
  def reasonAgainstOurs: Option[String] = {
    val conf = SQLConf.get
    if (conf.stateStoreProviderClass != classOf[PenstockStateStoreProvider].getName)
      Some(s"its state is kept by ${conf.stateStoreProviderClass}, not by Penstock's provider")
    else
      Option.unless(conf.stateStoreEncodingFormat.equalsIgnoreCase(BinaryRows))(
        s"its state is encoded as ${conf.stateStoreEncodingFormat}")
  }
}
