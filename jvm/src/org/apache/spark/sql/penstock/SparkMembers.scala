// Scala because: private fields and methods of Spark can only be read by reflection in its JVM.
package org.apache.spark.sql.penstock

import java.lang.reflect.{AccessibleObject, Field, Method}
import java.util.{Map => JMap}
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.locks.{Condition, ReentrantLock}

import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.streaming.operators.stateful.{BaseStreamingDeduplicateExec, StateStoreSaveExec}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates
import org.apache.spark.sql.execution.streaming.runtime.{FileStreamSource, StreamExecution}
import org.apache.spark.sql.execution.streaming.sinks.{FileStreamSink, FileStreamSinkLog}
import org.apache.spark.sql.execution.streaming.state.{ColumnFamilyInfo, RocksDB}
import org.rocksdb.{ReadOptions, RocksDB => NativeRocksDB, Statistics}

import penstock.{BadCall, Version}

/**
 * Every private member of Spark that the plug-in reads by reflection, with the reason. `check` looks
 * for all of them when a session or an executor starts, because another version of Spark may lack
 * one that a query needs only hours later.
 */
object SparkMembers extends Logging {

  /**
   * Where a file sink keeps its log: nothing else tells. Where it is missing, such a sink is taken to
   * skip a batch that it has.
   */
  val FileSinkLog = new SparkField[FileStreamSink, FileStreamSinkLog](
    classOf[FileStreamSink], "fileLog", classOf[FileStreamSinkLog])

  /**
   * Whether a file source deletes what it has read: the only sign of the option `cleanSource`. Where
   * it is missing, every file source is taken to.
   */
  val FileCleaner = new SparkField[FileStreamSource, Option[_]](
    classOf[FileStreamSource], "sourceCleaner", classOf[Option[_]])

  /**
   * The files in a source's folder: asking the source itself takes them. Where this or the next one
   * is missing, Spark cuts the batches of file sources.
   */
  val ListedFiles = new SparkMethod[FileStreamSource, Seq[Product]](
    classOf[FileStreamSource], "fetchAllFiles", classOf[Seq[_]])

  /** Those it has decided on for a query that reads what is available now. */
  val FilesAvailableNow = new SparkField[FileStreamSource, Seq[Product]](
    classOf[FileStreamSource], "allFilesForTriggerAvailableNow", classOf[Seq[_]])

  /**
   * Whether anybody waits for a query to have processed all data. Where they are missing, somebody is
   * taken to.
   */
  val ProgressLock = new SparkMethod[StreamExecution, ReentrantLock](
    classOf[StreamExecution], "awaitProgressLock", classOf[ReentrantLock])
  val ProgressCondition = new SparkMethod[StreamExecution, Condition](
    classOf[StreamExecution], "awaitProgressLockCondition", classOf[Condition])

  /**
   * The native store, whose rows scans for eviction read and whose compaction can rest while an LSM
   * checkpoint is taken. Where it is missing, scans are Spark's and compaction goes on.
   */
  val NativeStore =
    new SparkField[RocksDB, NativeRocksDB](classOf[RocksDB], "db", classOf[NativeRocksDB])

  /** The only place that has the time of compactions. Where it is missing, none is reported. */
  val NativeStatistics =
    new SparkField[RocksDB, Statistics](classOf[RocksDB], "nativeStats", classOf[Statistics])

  /** Whether the next commit must take a snapshot, and which was the last that did. */
  val SnapshotForced = new SparkField[RocksDB, AtomicBoolean](
    classOf[RocksDB], "shouldForceSnapshot", classOf[AtomicBoolean])
  val LastSnapshotVersion =
    new SparkMethod[RocksDB, Long](classOf[RocksDB], "lastSnapshotVersion", java.lang.Long.TYPE)

  /**
   * The families of a store and the options of its look-ups: scans for eviction pass RocksDB's cache
   * by them. Where they are missing, these scans go through the cache.
   */
  val ColumnFamilies = new SparkField[RocksDB, JMap[String, ColumnFamilyInfo]](
    classOf[RocksDB], "colFamilyNameToInfoMap", classOf[JMap[_, _]])
  val StoreReadOptions =
    new SparkField[RocksDB, ReadOptions](classOf[RocksDB], "readOptions", classOf[ReadOptions])

  /**
   * What operators compare event times with: generated code refers to the watermark in it. Where
   * they are missing, Spark compiles the code of each batch anew.
   */
  val SaveLate = watermarkField(classOf[StateStoreSaveExec], "watermarkExpressionForLateEvents")
  val SaveEvicted = watermarkField(classOf[StateStoreSaveExec], "watermarkExpressionForEviction")
  val DeduplicateLate =
    watermarkField(classOf[BaseStreamingDeduplicateExec], "watermarkExpressionForLateEvents")
  val JoinEvicted = new SparkField[StreamingSymmetricHashJoinExec, JoinStateWatermarkPredicates](
    classOf[StreamingSymmetricHashJoinExec],
    "stateWatermarkPredicates",
    classOf[JoinStateWatermarkPredicates])

  /**
   * Which file each property of a Hadoop configuration came from. Of Hadoop and not of Spark, and
   * only ever emptied to save time: where it is missing, nothing is refused.
   */
  val ConfigurationSources = new SparkField[Configuration, JMap[String, Array[String]]](
    classOf[Configuration], "updatingResource", classOf[JMap[_, _]])

  private def watermarkField[A](owner: Class[A], name: String): SparkField[A, Option[Expression]] =
    new SparkField[A, Option[Expression]](owner, name, classOf[Option[_]])

  /** Those without which an answer or a recovery could be wrong. */
  private[penstock] val needed: Seq[SparkMember] =
    Seq(SnapshotForced, LastSnapshotVersion)

  /** Those that a query can do without, with what is lost where they are missing. */
  private[penstock] val optional: Seq[(SparkMember, String)] = Seq(
    FileSinkLog -> Skipping,
    FileCleaner -> "a query that reads files commits each batch before it cuts the next",
    ListedFiles -> Unlisted, FilesAvailableNow -> Unlisted,
    ProgressLock -> Unheld, ProgressCondition -> Unheld,
    NativeStore -> "scans for eviction are Spark's, and no commit pauses or awaits compaction",
    NativeStatistics -> "the time of compactions is reported as 0",
    ColumnFamilies -> "scans for eviction of joins go through RocksDB's cache",
    StoreReadOptions -> "look-ups for eviction go through RocksDB's cache",
    SaveLate -> Recompiled, SaveEvicted -> Recompiled, DeduplicateLate -> Recompiled,
    JoinEvicted -> Recompiled)

  private def Skipping = "a query with state and a file sink keeps its state in checkpoint format 1, " +
    "and is refused from a checkpoint that was begun with format 2"

  private def Unheld = "data are never withheld from a batch, not even for a deadline"

  private def Unlisted = "Spark cuts the batches of files by itself, whatever deadline their query has"

  private def Recompiled = "code that compares event times is compiled anew when a watermark moves"

  private lazy val checked: Unit = {
    needed.foreach(_.check())
    missing.foreach(logWarning(_))
  }

  /** Of members that a query can do without, a sentence for each that this Spark lacks. */
  def missing: Seq[String] = missingOf(optional)

  private[penstock] def missingOf(members: Seq[(SparkMember, String)]): Seq[String] =
    for ((member, lost) <- members; lack <- member.lack) yield s"$lack: $lost. Nothing else differs"

  /**
   * Throws BadCall, which names the version of Spark, if it lacks one that is needed; says once which
   * of the others it lacks.
   */
  def check(): Unit = checked
}

/** A member of one of Spark's classes: a field or a method of a name and a type. */
sealed abstract class SparkMember(kind: String, owner: Class[_], name: String, expected: Class[_]) {
  protected type Member <: AccessibleObject

  protected def find(): Member

  protected def typeOf(member: Member): Class[_]

  protected lazy val member: Member = {
    val declared =
      try Some(find())
      catch { case _: NoSuchFieldException | _: NoSuchMethodException => None }
    val usable = declared.filter(candidate => expected.isAssignableFrom(typeOf(candidate))).getOrElse(
      throw new BadCall(
        "other_spark",
        s"Spark $SPARK_VERSION has no $kind $name of class ${owner.getName} with type " +
          s"${expected.getName}, which the plug-in needs; use Spark ${Version.spark}"))
    usable.setAccessible(true)
    usable
  }

  def check(): Unit = { member; () }

  lazy val isThere: Boolean = Try(check()).isSuccess

  /** That this version of Spark lacks it, in words, if it does. */
  def lack: Option[String] = Option.unless(isThere)(s"Spark $SPARK_VERSION has no $this")

  override def toString: String = s"$kind $name of class ${owner.getName}"
}

final class SparkField[A, B](owner: Class[A], name: String, expected: Class[_])
    extends SparkMember("field", owner, name, expected) {
  override protected type Member = Field

  override protected def find(): Field = owner.getDeclaredField(name)

  override protected def typeOf(field: Field): Class[_] = field.getType

  def of(instance: A): B = member.get(instance).asInstanceOf[B]

  /** None where this version lacks the field, or keeps nothing in it. */
  def ifAny(instance: A): Option[B] = Try(of(instance)).toOption.flatMap(Option(_))

  /** False where this version lacks the field: then nothing is set. */
  def setIfAny(instance: A, value: B): Boolean = Try(member.set(instance, value)).isSuccess
}

final class SparkMethod[A, B](owner: Class[A], name: String, expected: Class[_])
    extends SparkMember("method", owner, name, expected) {
  override protected type Member = Method

  override protected def find(): Method = owner.getDeclaredMethod(name)

  override protected def typeOf(method: Method): Class[_] = method.getReturnType

  def of(instance: A): B = member.invoke(instance).asInstanceOf[B]

  /** None where this version lacks the method. */
  def ifAny(instance: A): Option[B] = Option.when(isThere)(of(instance))
}
