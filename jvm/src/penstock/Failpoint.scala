package penstock

import java.nio.file.{Files, Path}

/**
 * Places where a test may stop the process for good, to kill it there.
 *
 * With `PENSTOCK_FAILPOINT=point@batch:folder` in the environment, every thread that reaches that
 * point of that batch creates `folder/query` and never goes on. Without it this is one comparison
 * with null.
 */
object Failpoint {
  private final case class Armed(point: String, batch: Long, folder: String)

  private val Pattern = "([a-z_]+)@([0-9]+):(.+)".r

  private val armed: Armed = sys.env.get("PENSTOCK_FAILPOINT") match {
    case Some(Pattern(point, batch, folder)) => Armed(point, batch.toLong, folder)
    case Some(other) =>
      throw new IllegalArgumentException(
        s"PENSTOCK_FAILPOINT is '$other'; it takes point@batch:folder")
    case None => null
  }

  def reach(point: String, query: String, batch: Long): Unit =
    if (armed != null && armed.point == point && armed.batch == batch) {
      Files.createDirectories(Path.of(armed.folder))
      Files.writeString(Path.of(armed.folder, query), batch.toString)
      while (true) Thread.sleep(Long.MaxValue)
    }
}
