// Scala because: Spark reads state and offsets from Hadoop's input streams, once per file of a
// task.
package penstock.checkpoint

import java.io.{ByteArrayInputStream, EOFException, File}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FSDataInputStream, Path, PositionedReadable, Seekable}

/** Files that are opened for Spark from elsewhere than the checkpoint location. */
private[checkpoint] object OpenFiles {
  /** A file of the local disk, read without Hadoop's checksums. */
  def local(file: File, conf: Configuration): FSDataInputStream =
    FileSystem.getLocal(conf).getRaw.open(new Path(file.toURI))

  /** Bytes in memory, read as a file. */
  def bytes(bytes: Array[Byte]): FSDataInputStream =
    new FSDataInputStream(new SeekableBytes(bytes))
}

/** Bytes in memory, as Hadoop wants a stream to be. */
private final class SeekableBytes(bytes: Array[Byte])
    extends ByteArrayInputStream(bytes)
    with Seekable
    with PositionedReadable {
  override def seek(position: Long): Unit = pos = position.toInt

  override def getPos: Long = pos.toLong

  override def seekToNewSource(target: Long): Boolean = false

  override def read(position: Long, buffer: Array[Byte], offset: Int, length: Int): Int = {
    val count = math.min(length.toLong, bytes.length - position).toInt
    if (count <= 0) -1
    else {
      System.arraycopy(bytes, position.toInt, buffer, offset, count)
      count
    }
  }

  override def readFully(position: Long, buffer: Array[Byte], offset: Int, length: Int): Unit =
    if (read(position, buffer, offset, length) < length) throw new EOFException()

  override def readFully(position: Long, buffer: Array[Byte]): Unit =
    readFully(position, buffer, 0, buffer.length)
}
