// Scala because: Spark asks each source of a query by itself, on the stream thread.
package penstock.admission

import org.apache.spark.sql.connector.read.streaming.{Offset, SparkDataStream}

import penstock.Clock
import penstock.commit.jvm.JvmResources
import penstock.query.QueryRuns
import penstock.settings.{Connection, StatedTerms}
import penstock.wire.BatchInput

/**
 * A source whose batches are cut by admission where its query has terms. Such a source does not ask
 * by itself: the one that Spark calls first asks for all sources of the query.
 */
trait AdmittedSource { this: SparkDataStream =>

  /** The terms among its options. */
  def statedTerms: StatedTerms

  /** The server to ask. */
  def connection: Connection

  /** What is there to read. `start` is where the query's next batch begins, None at its beginning. */
  def lookFrom(start: Option[Offset]): BatchInput

  /** The clock of this JVM, by which it is known how long data have waited. */
  protected final def clock: Clock = JvmResources.here.clock

  /** Decided at the first question: None inside if batches of the query are cut as Spark does. */
  private[admission] var admission: Option[Option[QueryAdmission]] = None

  /** What this source may read in the batch that is being cut; None: cut it as Spark does. */
  protected final def admitted(): Option[Admitted] =
    QueryAdmission.of(this).flatMap(_.admitted(this))

  /** A batch has been given this much of the source, outside the log, and leaves this much. */
  protected final def took(read: Amount, left: Amount): Unit =
    admission.flatten.foreach(_.tookOf(this, read, left))

  /** How the query keeps its terms, for Spark's progress; nothing where it has none. */
  protected final def admissionMetrics(): Map[String, String] =
    admission.flatten.fold(Map.empty[String, String])(_.metricsOf(this))

  /** The query is ending: a moment to make durable what it has computed. */
  protected final def drain(): Unit = QueryRuns.here.drain()
}
