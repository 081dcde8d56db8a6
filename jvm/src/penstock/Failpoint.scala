// Scala because: tests hold up threads of drivers and executors at points inside the plug-in.
package penstock

import java.nio.file.{Files, NoSuchFileException, Path}

/**
 * Places where a test may hold the process up, to look at it or to kill it there.
 *
 * With `PENSTOCK_FAILPOINT=point@batch:folder` in the environment, every thread that reaches that
 * point of that batch creates `folder/query` and goes on only once there is a file `folder/go`.
 * Several points are divided by commas.
 *
 * With `PENSTOCK_FAILPOINT=folder` points are chosen while the process runs: every thread that
 * reaches a point while there is a folder `folder/point@query`, `folder/point@query@pid=process` or
 * `folder/point@query@batch=number` creates a file in it, named by its process, and goes on only
 * once that folder is gone.
 *
 * Without it this is one comparison with null.
 */
object Failpoint {
  private sealed trait Armed {
    def reach(point: String, query: String, batch: Long): Unit
  }

  private val Pattern = "([a-z_,]+)@([0-9]+):(.+)".r
  private val PollMs = 10L

  private val armed: Armed = sys.env.get("PENSTOCK_FAILPOINT") match {
    case Some(Pattern(points, batch, folder)) =>
      new AtBatch(points.split(',').toSet, batch.toLong, Path.of(folder))
    case Some(folder) if Path.of(folder).isAbsolute => new WhileThere(Path.of(folder))
    case Some(other) =>
      throw new IllegalArgumentException(
        s"PENSTOCK_FAILPOINT is '$other'; it takes point@batch:folder, or a folder")
    case None => null
  }

  def reach(point: String, query: String, batch: Long): Unit =
    if (armed != null) armed.reach(point, query, batch)

  private final class AtBatch(points: Set[String], armedBatch: Long, folder: Path) extends Armed {
    override def reach(point: String, query: String, batch: Long): Unit =
      if (armedBatch == batch && points(point)) {
        Files.createDirectories(folder)
        Files.writeString(folder.resolve(query), batch.toString)
        while (!Files.exists(folder.resolve("go"))) Clock.System.sleepMs(PollMs)
      }
  }

  private final class WhileThere(folder: Path) extends Armed {
    private val process = ProcessHandle.current.pid.toString

    override def reach(point: String, query: String, batch: Long): Unit =
      Seq("", s"@pid=$process", s"@batch=$batch").foreach { only =>
        val chosen = folder.resolve(s"$point@$query$only")
        while (Files.isDirectory(chosen)) {
          try Files.writeString(chosen.resolve(process), batch.toString)
          catch { case _: NoSuchFileException => }
          Clock.System.sleepMs(PollMs)
        }
      }
  }
}
