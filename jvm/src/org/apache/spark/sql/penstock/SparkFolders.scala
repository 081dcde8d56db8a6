// Scala because: executors, which run no Python of ours, need Spark's temporary folder of their
// JVM.
package org.apache.spark.sql.penstock

import java.io.File
import java.nio.file.Path

import org.apache.spark.SparkEnv
import org.apache.spark.util.{ShutdownHookManager, Utils}

/** Folders that Spark makes and deletes. */
object SparkFolders {
  /** Spark's folder for temporary files of this JVM; Spark deletes it at the end. */
  def localFolder: Path = Path.of(Utils.getLocalDir(SparkEnv.get.conf))

  /** When this process is told to end, the body runs before Spark deletes its temporary folders. */
  def beforeTheyAreDeleted(body: => Unit): Unit = {
    ShutdownHookManager.addShutdownHook(BeforeFolders)(() => body)
    ()
  }

  /** Hooks run from the highest to the lowest; folders that tasks write to have one more than this. */
  private val BeforeFolders = ShutdownHookManager.TEMP_DIR_SHUTDOWN_PRIORITY + 10

  def deleteRecursively(folder: File): Unit = Utils.deleteRecursively(folder)
}
