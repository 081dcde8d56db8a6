// Scala because: Spark brings Jackson, with which the JVM reads what the server answers.
package penstock.wire

import com.fasterxml.jackson.databind.ObjectMapper

/** The one JSON mapper of this JVM; safe for threads, and slow to make. */
object Json extends ObjectMapper
