package penstock

import java.nio.file.{Files, Path}

/**
 * Places where a test may hold the process up, to look at it or to kill it there.
 *
 * With `PENSTOCK_FAILPOINT=point@batch:folder` in the environment, every thread that reaches that
 * point of that batch creates `folder/query` and goes on only once there is a file `folder/go`.
 * Several points are divided by commas. Without it this is one comparison with null.
 */
object Failpoint {
  private final case class Armed(points: Set[String], batch: Long, folder: String)

  private val Pattern = "([a-z_,]+)@([0-9]+):(.+)".r
  private val PollMs = 10L

  private val armed: Armed = sys.env.get("PENSTOCK_FAILPOINT") match {
    case Some(Pattern(points, batch, folder)) =>
      Armed(points.split(',').toSet, batch.toLong, folder)
    case Some(other) =>
      throw new IllegalArgumentException(
        s"PENSTOCK_FAILPOINT is '$other'; it takes point@batch:folder")
    case None => null
  }

  def reach(point: String, query: String, batch: Long): Unit =
    if (armed != null && armed.batch == batch && armed.points(point)) {
      Files.createDirectories(Path.of(armed.folder))
      Files.writeString(Path.of(armed.folder, query), batch.toString)
      while (!Files.exists(Path.of(armed.folder, "go"))) Thread.sleep(PollMs)
    }
}
