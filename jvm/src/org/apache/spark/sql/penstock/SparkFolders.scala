// Scala because: executors, which run no Python of ours, need Spark's temporary folder of their
// JVM.
package org.apache.spark.sql.penstock

import java.io.File
import java.nio.file.Path

import org.apache.spark.SparkEnv
import org.apache.spark.util.Utils

/** Folders that Spark makes and deletes. */
object SparkFolders {
  /** Spark's folder for temporary files of this JVM; Spark deletes it at the end. */
  def localFolder: Path = Path.of(Utils.getLocalDir(SparkEnv.get.conf))

  def deleteRecursively(folder: File): Unit = Utils.deleteRecursively(folder)
}
