// Scala because: Spark's plug-in channel carries Java objects only, and tasks send one per piece
// of state.
package penstock.commit.channel

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream, ObjectStreamClass}

/**
 * Messages as bytes. Spark reads what comes through its plug-in channel with a class loader that
 * does not know the jars of an application, so only classes of the JVM itself may travel there.
 */
object JavaBytes {
  def encode(message: Serializable): Array[Byte] = {
    val bytes = new ByteArrayOutputStream()
    val out = new ObjectOutputStream(bytes)
    out.writeObject(message)
    out.close()
    bytes.toByteArray
  }

  def decode[A](bytes: Array[Byte]): A = {
    val in = new ObjectInputStream(new ByteArrayInputStream(bytes)) {
      override def resolveClass(description: ObjectStreamClass): Class[_] =
        Class.forName(description.getName, false, getClass.getClassLoader)
    }
    try in.readObject().asInstanceOf[A]
    finally in.close()
  }
}
