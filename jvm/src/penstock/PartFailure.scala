// Scala because: it tells failures of code in Spark's JVM apart, where they are caught.
package penstock

import scala.util.control.NonFatal

/**
 * A failure of a part that a query can do without. Another release of Spark may lack a class or a
 * method that the part was compiled against: that is a LinkageError, which NonFatal leaves alone as
 * it does the JVM's own troubles.
 */
object PartFailure {
  def unapply(failure: Throwable): Option[Throwable] = failure match {
    case linkage: LinkageError => Some(linkage)
    case NonFatal(e) => Some(e)
    case _ => None
  }
}
