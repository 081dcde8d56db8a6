// Scala because: it implements Hadoop's FileSystem, whose class name is in the settings of tests
// and benchmarks.
package penstock.testing

import java.io.{FilterOutputStream, IOException, OutputStream}
import java.net.URI
import java.nio.file.{Files, NoSuchFileException, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.util.Progressable

import penstock.Clock

/**
 * A local folder behind a declared delay: stands for a remote checkpoint store where none is at
 * hand. `remote20:///path` takes 20 ms per operation and moves 100 MB/s, `remote80:///path` 80 ms
 * and 50 MB/s. Works on executors too: all it knows is in the Hadoop configuration.
 *
 * A file named by `fs.<scheme>.faults` scripts faults for all processes at once, one per line:
 * `fail OPERATION`, `hang OPERATION` (until the line is gone) or `full` (writing fails as on a
 * full disk). OPERATION is one of open, create, write, rename, delete, list, mkdirs, status. An
 * operation that Hadoop's local file system makes of several is one here, as it is on a server.
 */
final class DelayedFileSystem extends RawLocalFileSystem {
  private var uri: URI = _
  private var store: DelayedStore = _

  override def initialize(name: URI, conf: Configuration): Unit = {
    uri = URI.create(s"${name.getScheme}:///")
    store = DelayedStore.of(name.getScheme, conf)
    super.initialize(name, conf)
    setWorkingDirectory(new Path(s"${name.getScheme}:///"))
  }

  // Hadoop's constructor asks before `initialize` has told us.
  override def getUri: URI = Option(uri).getOrElse(super.getUri)

  override def getScheme: String = getUri.getScheme

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    once("open", path) {
      store.moved(super.getFileStatus(path).getLen)
      super.open(path, bufferSize)
    }
  }

  override def create(
      path: Path,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable): FSDataOutputStream = {
    once("create", path) {
      delayed(super.create(path, overwrite, bufferSize, replication, blockSize, progress), path)
    }
  }

  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable): FSDataOutputStream =
    create(path, overwrite, bufferSize, replication, blockSize, progress)

  override def createNonRecursive(
      path: Path,
      permission: FsPermission,
      flags: java.util.EnumSet[CreateFlag],
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable): FSDataOutputStream = {
    val overwrite = flags.contains(CreateFlag.OVERWRITE)
    create(path, overwrite, bufferSize, replication, blockSize, progress)
  }

  override def rename(from: Path, to: Path): Boolean = {
    once("rename", from)(super.rename(from, to))
  }

  override def delete(path: Path, recursive: Boolean): Boolean = {
    once("delete", path)(super.delete(path, recursive))
  }

  override def listStatus(path: Path): Array[FileStatus] = {
    once("list", path)(super.listStatus(path))
  }

  override def mkdirs(path: Path): Boolean = {
    once("mkdirs", path)(super.mkdirs(path))
  }

  override def getFileStatus(path: Path): FileStatus = {
    once("status", path)(super.getFileStatus(path))
  }

  // Hadoop's local file system starts a process for each of these two, whose cost on the cores of
  // this machine no store at the other end of a wire has.
  override def setPermission(path: Path, permission: FsPermission): Unit = ()

  override def getFileLinkStatus(path: Path): FileStatus = getFileStatus(path)

  /** One operation, whatever it consists of. */
  private[testing] def once[A](name: String, path: Path)(body: => A): A = {
    val outer = DelayedFileSystem.depth.get()
    if (outer == 0) store.operation(name, path)
    DelayedFileSystem.depth.set(outer + 1)
    try body
    finally DelayedFileSystem.depth.set(outer)
  }

  private def delayed(out: FSDataOutputStream, path: Path): FSDataOutputStream =
    new FSDataOutputStream(new PacedStream(out, path), null)

  /** Charges for what was written when it is closed, as an upload would. */
  private final class PacedStream(out: OutputStream, path: Path) extends FilterOutputStream(out) {
    private var bytes = 0L
    private var isClosed = false

    override def write(data: Array[Byte], offset: Int, length: Int): Unit = {
      store.writing(path)
      out.write(data, offset, length)
      bytes += length
    }

    override def write(byte: Int): Unit = {
      out.write(byte)
      bytes += 1
    }

    override def close(): Unit = if (!isClosed) {
      isClosed = true
      store.operation("write", path)
      store.moved(bytes)
      super.close()
    }
  }
}

private object DelayedFileSystem {

  /** How many operations the calling thread is inside of. */
  val depth: ThreadLocal[Int] = ThreadLocal.withInitial(() => 0)
}

/** The same store for Hadoop's other interface, FileContext, which Spark's file manager uses. */
final class DelayedFs(uri: URI, conf: Configuration)
    extends DelegateToFileSystem(uri, DelayedFs.ready(uri, conf), conf, uri.getScheme, false) {
  private def files: DelayedFileSystem = fsImpl.asInstanceOf[DelayedFileSystem]

  override def getUriDefaultPort: Int = -1

  override def renameInternal(from: Path, to: Path, overwrite: Boolean): Unit =
    files.once("rename", from)(super.renameInternal(from, to, overwrite))

  override def createInternal(
      path: Path,
      flags: java.util.EnumSet[CreateFlag],
      permission: FsPermission,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable,
      checksum: Options.ChecksumOpt,
      createParent: Boolean): FSDataOutputStream =
    files.once("create", path) {
      super.createInternal(
        path, flags, permission, bufferSize, replication, blockSize, progress, checksum,
        createParent)
    }
}

private object DelayedFs {

  /** Hadoop asks a file system for its address before it initialises it. */
  def ready(uri: URI, conf: Configuration): FileSystem = {
    val files = new DelayedFileSystem
    files.initialize(uri, conf)
    files
  }
}

/** The delays of one scheme, and the faults scripted for it. */
private final class DelayedStore(msPerOperation: Long, msPerMb: Double, faults: Option[LocalPath]) {

  def operation(name: String, path: Path): Unit = {
    while (scripted.contains(s"hang $name")) Clock.System.sleepMs(20)
    if (scripted.contains(s"fail $name")) {
      throw new IOException(s"scripted fault: $name of $path failed")
    }
    pause(msPerOperation.toDouble)
  }

  def writing(path: Path): Unit = if (scripted.contains("full")) {
    throw new IOException(s"No space left on device (scripted fault, writing $path)")
  }

  def moved(bytes: Long): Unit = pause(bytes / 1e6 * msPerMb)

  private def pause(ms: Double): Unit = Clock.System.sleepNs((ms * Clock.NsInMs).toLong)

  private def scripted: Set[String] = faults.fold(Set.empty[String]) { file =>
    try Files.readString(file).linesIterator.map(_.trim).toSet
    catch { case _: NoSuchFileException => Set.empty }
  }
}

private object DelayedStore {
  private val Standard = Map("remote20" -> ((20L, 10.0)), "remote80" -> ((80L, 20.0)))

  def of(scheme: String, conf: Configuration): DelayedStore = {
    val (operation, mb) = Standard.getOrElse(scheme, (0L, 0.0))
    new DelayedStore(
      conf.getLong(s"fs.$scheme.ms.per.operation", operation),
      conf.getDouble(s"fs.$scheme.ms.per.mb", mb),
      Option(conf.get(s"fs.$scheme.faults")).map(LocalPath.of(_)))
  }
}
