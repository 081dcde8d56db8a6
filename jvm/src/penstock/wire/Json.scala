package penstock.wire

import com.fasterxml.jackson.databind.ObjectMapper

/** The one JSON mapper of this JVM; safe for threads, and slow to make. */
object Json extends ObjectMapper
