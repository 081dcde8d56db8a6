// Scala because: it implements Spark's DataWriter, which takes every row of every task.
package penstock.sink

import java.io.ByteArrayOutputStream
import java.nio.channels.Channels

import scala.collection.mutable

import org.apache.arrow.memory.BufferAllocator
import org.apache.arrow.vector.{VectorSchemaRoot, VectorUnloader}
import org.apache.arrow.vector.ipc.WriteChannel
import org.apache.arrow.vector.ipc.message.MessageSerializer
import org.apache.arrow.vector.types.pojo.Schema
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.penstock.ArrowBridge
import org.apache.spark.sql.types.StructType

import penstock.{Clock, Failpoint}
import penstock.commit.executor.JointAppend
import penstock.commit.jvm.JvmResources
import penstock.observe.{SinkTimes, TaskStart}
import penstock.settings.Connection
import penstock.wire.{Stamp, Write}

/** A stream that a query writes to; `schema` is that of its rows. */
final case class Target(stream: String, substreams: Int, key: Seq[String], schema: StructType)

/**
 * Everything a task needs to write its part of a batch. Made on the driver. Of several targets each
 * has a column of its own, in their order, whose structs are its rows.
 *
 * @param isEarly the log may answer tasks before its sync, which the marker then brings
 */
final case class WritePlan(
    connection: Connection,
    targets: Seq[Target],
    isByColumn: Boolean,
    query: String,
    instance: Long,
    isEarly: Boolean)

/** What a task attempt appended; reaches the driver only if the attempt succeeded. */
final case class Appended(writes: Seq[Write], times: SinkTimes) extends WriterCommitMessage

/**
 * Appends one task attempt's rows as pending entries: invisible until a marker names them, so an
 * attempt that fails, or loses to another one, leaves nothing to take back.
 */
final class TaskWriter(plan: WritePlan, batch: Long, partition: Int, attempt: Long)
    extends DataWriter[InternalRow] {

  private val startedNs = Clock.System.nanos
  private val openNs = TaskStart.sinceNs(startedNs)
  private val stamp = Stamp(plan.query, plan.instance, batch, partition, attempt)
  private val writers = plan.targets.map(new StreamWriter(plan, _, stamp)).toArray
  private val widths = plan.targets.map(_.schema.length).toArray

  /** State that this task writes goes to the log with its last rows. */
  private val jointAppend =
    JvmResources.here.jointAppends.begin(plan.query, plan.instance, batch, partition)

  override def write(row: InternalRow): Unit = {
    if (!plan.isByColumn) writers(0).write(row)
    else {
      var output = 0
      while (output < writers.length) {
        if (!row.isNullAt(output)) writers(output).write(row.getStruct(output, widths(output)))
        output += 1
      }
    }
    Failpoint.reach("mid_task", plan.query, batch)
  }

  override def commit(): WriterCommitMessage = {
    val rowsNs = Clock.System.nanos - startedNs - writers.iterator.map(_.appendedNs).sum
    val carrier = writers.find(_.hasRows)
    val writes = writers.toSeq
      .map(writer => writer.finish(if (carrier.contains(writer)) Some(jointAppend) else None))
      .filter(_.entries.nonEmpty)
    Appended(writes, SinkTimes(openNs, rowsNs, writers.iterator.map(_.appendedNs).sum))
  }

  override def abort(): Unit = ()

  override def close(): Unit =
    try jointAppend.end()
    finally writers.foreach(_.close())
}

/** The rows of one attempt for one stream. */
private final class StreamWriter(plan: WritePlan, target: Target, stamp: Stamp) {
  import StreamWriter._

  private val gateway = JvmResources.here.gateways.to(plan.connection)
  private val allocator = ArrowBridge.allocator(s"penstock-write-${stamp.partition}")
  private val arrowSchema = ArrowBridge.arrowSchema(target.schema)
  private val routing =
    if (target.key.isEmpty) None else Some(new Routing(target.schema, target.key, target.substreams))
  private val buffers = new Array[RowBuffer](target.substreams)
  private val appended = mutable.ArrayBuffer.empty[Long]
  private val starts = mutable.Map.empty[Long, Long]
  private var rowsSinceFlush = 0
  private var tookNs = 0L
  private var turn = stamp.partition % target.substreams

  def write(row: InternalRow): Unit = {
    val substream = routing.fold(turn)(_.substreamOf(row))
    if (buffers(substream) == null) buffers(substream) = new RowBuffer(arrowSchema, allocator)
    buffers(substream).write(row)
    rowsSinceFlush += 1
    if (rowsSinceFlush % RowsBetweenChecks == 0 && bufferedBytes >= FlushBytes) flush(None)
  }

  /** How long encoding and appending took. */
  def appendedNs: Long = tookNs

  def hasRows: Boolean = rowsSinceFlush > 0

  /** Sends the rows that are left, with the state of the task if it is given. */
  def finish(jointAppend: Option[JointAppend]): Write = {
    flush(jointAppend)
    Write(target.stream, stamp.partition, stamp.attempt, appended.toSeq, starts.toMap)
  }

  def close(): Unit = {
    buffers.foreach(buffer => if (buffer != null) buffer.close())
    allocator.close()
  }

  private def bufferedBytes: Long =
    buffers.iterator.filter(_ != null).map(_.bytes).sum

  /** One request for all substreams: a task waits for one append, not for one each. */
  private def flush(jointAppend: Option[JointAppend]): Unit = {
    val filled = buffers.indices.filter(k => buffers(k) != null && buffers(k).rows > 0)
    if (filled.nonEmpty) {
      val flushedNs = Clock.System.nanos
      val out = new ByteArrayOutputStream()
      val channel = new WriteChannel(Channels.newChannel(out))
      MessageSerializer.serialize(channel, arrowSchema)
      filled.foreach(k => buffers(k).drainTo(channel))
      channel.writeIntLittleEndian(MessageSerializer.IPC_CONTINUATION_TOKEN)
      channel.writeIntLittleEndian(0)
      val state = jointAppend.toSeq.flatMap(_.takeState()).map(file => file.path -> file.bytes)
      val heldBytes = JvmResources.here.heldState.heldBytes
      val isEarly = plan.isEarly && jointAppend.forall(_.mayBeEarly(heldBytes))
      val start = Clock.System.nanos
      val places = gateway.streams
        .appendEntries(target.stream, stamp, filled, out.toByteArray, state, isEarly)
      val requestNs = Clock.System.nanos - start
      appended ++= places.entries
      // Places of one start only grow.
      places.start.foreach(start => starts(start) = places.entries.last)
      tookNs += start + requestNs - flushedNs
      jointAppend.foreach(_.answered(places.files, places.start, requestNs))
      rowsSinceFlush = 0
      turn = (turn + 1) % target.substreams
    }
  }
}

private object StreamWriter {

  /** A request is sent at about this size; well below the server's bound on one entry. */
  val FlushBytes: Long = 4L * 1024 * 1024
  val RowsBetweenChecks = 256
}

/** Rows of one substream on their way, in Arrow. */
private final class RowBuffer(schema: Schema, allocator: BufferAllocator) {
  private val root = VectorSchemaRoot.create(schema, allocator)
  private val writer = ArrowWriter.create(root)
  private var count = 0

  def rows: Int = count

  def bytes: Long = writer.sizeInBytes()

  def write(row: InternalRow): Unit = {
    writer.write(row)
    count += 1
  }

  def drainTo(channel: WriteChannel): Unit = {
    writer.finish()
    val batch = new VectorUnloader(root).getRecordBatch
    try MessageSerializer.serialize(channel, batch)
    finally batch.close()
    writer.reset()
    count = 0
  }

  def close(): Unit = root.close()
}
