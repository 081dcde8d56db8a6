// Scala because: executors append the state of their tasks over HTTP.
package penstock.client

import java.io.ByteArrayOutputStream
import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8

/** Checkpoint files in a request: names and sizes in its first line, bytes one after the other. */
private[client] object FileParameters {

  def of(files: Seq[(String, Array[Byte])]): String = {
    val paths = files.map(f => URLEncoder.encode(f._1, UTF_8)).mkString(",")
    s"paths=$paths&sizes=${files.map(_._2.length).mkString(",")}"
  }

  /** The files behind what comes before them. */
  def body(before: Array[Byte], files: Seq[(String, Array[Byte])]): Array[Byte] =
    if (files.isEmpty) before
    else {
      val out = new ByteArrayOutputStream(before.length + files.map(_._2.length).sum)
      out.write(before)
      files.foreach { case (_, bytes) => out.write(bytes) }
      out.toByteArray
    }
}
