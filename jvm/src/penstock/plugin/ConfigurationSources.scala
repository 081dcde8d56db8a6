// Scala because: what it empties is a private map of a Hadoop object in the driver's JVM.
package penstock.plugin

import java.util.{Map => JMap}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.util.VersionInfo

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.SparkField

/**
 * The notes that the application's Hadoop configuration keeps of which file each property came
 * from. Spark copies and broadcasts the configuration once or more per stateful operator and batch,
 * and Hadoop compresses these notes property by property, which takes longer than all the rest.
 * Emptied, they cost nothing; the properties themselves stay. Hadoop fills them again when a
 * library adds a file of defaults, so this is asked for before every job.
 *
 * @param notes the private field that has them
 */
private[penstock] final class ConfigurationSources(
    conf: Configuration,
    notes: SparkField[Configuration, JMap[String, Array[String]]])
    extends Logging {

  private var isTold = false

  /** Empties the notes. False, and said in the log once, where this version of Hadoop has none. */
  def forget(): Boolean = synchronized {
    conf.size() // reads the files, if that is still to be done, which is what fills the notes
    val sources = notes.ifAny(conf)
    sources.foreach(_.clear())
    if (sources.isEmpty && !isTold) {
      isTold = true
      logWarning(
        s"Hadoop ${VersionInfo.getVersion} keeps the sources of its configuration elsewhere: Spark " +
          "broadcasts them with every batch, which takes some milliseconds. Nothing else differs")
    }
    sources.isDefined
  }
}
