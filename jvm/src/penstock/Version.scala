// Scala because: Python asks the running JVM by this full name which jar it has loaded.
package penstock

import java.util.Properties

/** What this jar was built as; the Python side compares it with its own version after start. */
object Version {
  private lazy val built: Properties = {
    val properties = new Properties()
    val in = getClass.getResourceAsStream("/penstock-version.properties")
    if (in != null) {
      try properties.load(in)
      finally in.close()
    }
    properties
  }

  def current: String = built.getProperty("version", "unknown")

  def spark: String = built.getProperty("spark", "unknown")
}
