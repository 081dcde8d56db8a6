// Scala because: it holds the one object of each kind that code in Spark's packages shares in a JVM.
package penstock.commit.jvm

import scala.collection.mutable

/** Something of which a JVM has one, owned by JvmResources and closed with it. */
trait JvmPart {

  /** The run has ended here. */
  def forgetRun(run: String): Unit = ()

  def close(): Unit = ()
}

/**
 * The parts of JvmResources that it cannot name, because they are made of what is built on it. Each
 * is there from when it is first asked for.
 */
final class JvmParts {
  private val parts = mutable.LinkedHashMap.empty[Class[_], JvmPart]

  /** The part of this kind; `open` makes it, at once and without asking for another part. */
  def of[A <: JvmPart](kind: Class[A])(open: => A): A =
    synchronized(kind.cast(parts.getOrElseUpdate(kind, open)))

  def forgetRun(run: String): Unit = all.foreach(_.forgetRun(run))

  private[jvm] def close(): Unit = all.foreach(_.close())

  private def all: Seq[JvmPart] = synchronized(parts.values.toSeq)
}
