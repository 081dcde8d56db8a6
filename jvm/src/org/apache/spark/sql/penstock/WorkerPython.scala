// Scala because: which Python Spark starts workers with, and where that looks for modules, its own
// classes tell.
package org.apache.spark.sql.penstock

import org.apache.spark.SparkConf
import org.apache.spark.api.python.PythonUtils
import org.apache.spark.internal.config.PYSPARK_PYTHON

/** The Python that runs Spark's workers. In Spark's package because Spark shows it nowhere else. */
object WorkerPython {

  /** Its program. The driver says it, and every executor starts what it says. */
  def executable(conf: SparkConf): String =
    conf.get(PYSPARK_PYTHON).orElse(sys.env.get("PYSPARK_PYTHON")).getOrElse("python3")

  /** Where workers that this JVM starts look for modules. */
  def searchPath: String =
    PythonUtils.mergePythonPaths(PythonUtils.sparkPythonPath, sys.env.getOrElse("PYTHONPATH", ""))
}
