package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.hadoop.conf.Configuration

/** Hadoop's own settings, read once: a Configuration that is no copy reads their files again. */
object HadoopDefaults {
  val read: Configuration = {
    val conf = new Configuration
    conf.size()
    conf
  }
}
