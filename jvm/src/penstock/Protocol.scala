package penstock

import org.apache.hadoop.conf.Configuration

/** How a batch becomes visible. All but `marker` are there to be compared with it. */
sealed abstract class Protocol(val name: String) extends Serializable

object Protocol {

  /** One append shows the batch and commits it. */
  case object Marker extends Protocol("marker")

  /** A coordinator commits it in two phases, as Kafka Streams does. */
  case object Transaction extends Protocol("transaction")

  /**
   * Its state and positions go to the checkpoint location, one batch at a time; it shows when a
   * barrier has passed all queries it is chained with.
   */
  case object Aligned extends Protocol("aligned")

  /** Rows show when a task appends them, whatever becomes of it. */
  case object Unsafe extends Protocol("unsafe")

  val Key = "spark.penstock.commit.protocol"
  val CoordinatorKey = "spark.penstock.coordinator.url"

  private val all = Seq(Marker, Transaction, Aligned, Unsafe)

  def of(conf: Configuration): Protocol = from(key => Option(conf.get(key)))

  def from(get: String => Option[String]): Protocol = {
    val told = get(Key).getOrElse(Marker.name)
    all.find(_.name == told).getOrElse(throw new BadCall(
      "bad_setting",
      s"$Key is '$told'; it takes ${all.map(_.name).mkString(", ")}"))
  }

  /** Where transactions are coordinated, with the token of the log server. */
  def coordinator(get: String => Option[String], server: Connection): Option[Connection] =
    Option.when(from(get) == Transaction) {
      val url = get(CoordinatorKey).getOrElse(throw new BadCall(
        "bad_setting",
        s"$Key is transaction, which needs a coordinator: start `penstock coordinate` and set " +
          s"$CoordinatorKey to its address"))
      server.copy(url = url.stripSuffix("/"), ca = None)
    }
}
