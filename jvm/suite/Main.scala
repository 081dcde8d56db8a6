package org.apache.spark.sql.execution.streaming.state.contract

import java.io.{PrintWriter, StringWriter}
import java.nio.file.{FileAlreadyExistsException, Files, Path}

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.penstock.SparkMemberCases
import org.apache.spark.sql.penstock.admission.{KafkaCases, OutsideDataCases}
import org.apache.spark.sql.penstock.columnar.PlanRuleCases
import org.apache.spark.sql.penstock.eviction.WatermarkCases
import org.apache.spark.sql.penstock.lookahead.{LookaheadCases, RelayCases}

import penstock.admission.AdmissionCases
import penstock.commit.jvm.JvmResources
import penstock.devices.{DevicePlanCases, InterpreterCases}
import penstock.plugin.TokenCases
import penstock.prefetch.contract.PrefetchCases
import penstock.wire.Json

/**
 * Runs the cases for each variant in this one JVM and prints a line of JSON for each:
 * `{"variant", "group", "case", "ok", "error", "skipped", "ms"}`. Arguments: a folder to work in,
 * and, to run less than everything, words of which `variant:group:case` must have one.
 *
 * JVMs that are given one folder of claims share the work: each runs the groups of a variant that
 * none of the others has claimed before it, so that all of them are done at about the same time.
 */
object Main {
  private val Stock = "RocksDBStateStoreProvider"
  private val Ours = "PenstockStateStoreProvider"
  private val ClaimsKey = "penstock.suite.claims"

  private val variants = Seq(
    Variant("hdfs", "HDFSBackedStateStoreProvider"),
    Variant("rocksdb", Stock),
    Variant("rocksdb-families-changelog", Stock, families = true, codec = "zstd", changelog = true),
    Variant("rocksdb-changelog-v2", Stock, changelog = true, format = 2),
    Variant("ours-unqueued", Ours, codec = "zstd"),
    Variant("ours-unqueued-changelog-v2", Ours, changelog = true, format = 2),
    Variant("ours", Ours, queue = true),
    Variant("ours-families-changelog", Ours, families = true, codec = "zstd", changelog = true, queue = true),
    Variant("ours-changelog", Ours, changelog = true, queue = true),
    Variant("ours-changelog-v2", Ours, changelog = true, format = 2, queue = true),
    Variant("ours-families-v2", Ours, families = true, codec = "zstd", format = 2, queue = true),
    Variant("ours-asyncckpt", Ours, changelog = true, mode = "asyncckpt", queue = true))

  private val groups = Seq(
    "store" -> StoreCases,
    "version" -> VersionCases,
    "metric" -> MetricCases,
    "column family" -> ColumnFamilyCases,
    "fault" -> FaultCases,
    "zombie" -> ZombieCases,
    "held" -> HeldCases,
    "arrival" -> ArrivalCases,
    "dead thread" -> DeadThreadCases,
    "local space" -> LocalSpaceCases,
    "compaction" -> CompactionCases,
    "piece life" -> PieceLifeCases,
    "limits" -> LimitCases,
    "news" -> NewsCases,
    "isolation" -> IsolationCases,
    "run" -> RunCases,
    "retry" -> RetryCases,
    "stall" -> StallCases,
    "cache" -> CacheCases,
    "cached store" -> CachedStoreCases,
    "lookahead" -> LookaheadCases,
    "relay" -> RelayCases,
    "prefetch" -> PrefetchCases,
    "token" -> TokenCases,
    "admission" -> AdmissionCases,
    "device plans" -> DevicePlanCases,
    "interpreters" -> InterpreterCases,
    "plan rules" -> PlanRuleCases,
    "spark members" -> SparkMemberCases,
    "eviction" -> EvictionCases,
    "watermark" -> WatermarkCases,
    "outside data" -> OutsideDataCases,
    "kafka" -> KafkaCases)

  def main(arguments: Array[String]): Unit = {
    // Loggers write to standard output too; the lines of this program go to the real one.
    val out = System.out
    System.setOut(System.err)
    val folder = Path.of(arguments.head)
    val words = arguments.tail.toSeq
    Points.letGo()
    var number = 0
    for (variant <- variants; (group, cases) <- groups) {
      val wanted = cases.list.filter { contractCase =>
        words.isEmpty || words.exists(s"${variant.name}:$group:${contractCase.name}".contains)
      }
      if (wanted.nonEmpty && claim(s"${variant.name}.$group")) wanted.foreach { contractCase =>
        number += 1
        val at = Files.createDirectories(folder.resolve(s"w$number"))
        out.println(run(variant, contractCase, at).put("group", group).toString)
        out.flush()
      }
    }
    // Pools of the plug-in are daemons, but a case that is broken may have left anything.
    Runtime.getRuntime.halt(0)
  }

  /** Whether no other JVM has this part of the work; true where it is not shared. */
  private def claim(part: String): Boolean = sys.props.get(ClaimsKey).forall { claims =>
    try {
      Files.createFile(Path.of(claims).resolve(part))
      true
    } catch { case _: FileAlreadyExistsException => false }
  }

  private def run(variant: Variant, contractCase: Case, folder: Path): ObjectNode = {
    val start = System.nanoTime()
    val skipped = contractCase.skip(variant)
    val error = if (skipped.isDefined) None else attempt(variant, contractCase, folder)
    Json
      .createObjectNode()
      .put("variant", variant.name)
      .put("case", contractCase.name)
      .put("ok", error.isEmpty)
      .put("error", error.orNull)
      .put("skipped", skipped.orNull)
      .put("ms", (System.nanoTime() - start) / 1000000)
  }

  private def attempt(variant: Variant, contractCase: Case, folder: Path): Option[String] = {
    val rig = new StoreRig(variant, folder)
    val failure = failureOf(contractCase.body(rig))
    val stopping = failureOf(rig.stop())
    failure.orElse(stopping).orElse(failureOf(leavesNothing()))
  }

  /** A run that has ended leaves nothing open, however it ended. */
  private def leavesNothing(): Unit = {
    val resources = JvmResources.here
    resources.heldState.check()
    Checks.eventually(s"nothing is held: ${resources.holdings}", limitMs = 20000) {
      resources.sweep()
      resources.holdings.values.forall(_ == 0)
    }
  }

  private def failureOf(body: => Unit): Option[String] =
    try {
      body
      None
    } catch {
      case NonFatal(e) =>
        val text = new StringWriter
        e.printStackTrace(new PrintWriter(text))
        Some(text.toString)
    }
}
