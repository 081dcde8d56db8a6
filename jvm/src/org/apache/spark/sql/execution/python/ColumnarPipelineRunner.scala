// Scala because: it extends Spark's runner of Python workers, whose parts are private to this
// package.
package org.apache.spark.sql.execution.python

import java.io.DataOutputStream
import java.nio.channels.Channels
import java.util.{ArrayList => JArrayList}

import org.apache.arrow.memory.ArrowBuf
import org.apache.arrow.vector.{FieldVector, VectorSchemaRoot, VectorUnloader}
import org.apache.arrow.vector.compression.NoCompressionCodec
import org.apache.arrow.vector.ipc.{ArrowStreamWriter, WriteChannel}
import org.apache.arrow.vector.ipc.message.{ArrowFieldNode, ArrowRecordBatch, MessageSerializer}
import org.apache.spark.api.python.{ChainedPythonFunctions, PythonEvalType}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch}

/**
 * Sends some columns of Arrow batches to a Python worker as they are, and reads Arrow batches back.
 * The worker expects one column that is a struct of them, as of a `mapInArrow`: it is put around
 * them in the message, and no value is copied.
 *
 * @param places the columns to send, of which `input` has the types
 * @param timeZone the label of their times
 */
final class ColumnarPipelineRunner(
    function: ChainedPythonFunctions,
    input: StructType,
    places: Array[Int],
    timeZone: String,
    settings: Map[String, String],
    sqlMetrics: Map[String, SQLMetric],
    jobArtifactUUID: Option[String])
    extends BaseArrowPythonRunner[ColumnarBatch, ColumnarBatch](
      Seq((function, 0L)),
      PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
      Array(Array(0)),
      StructType(Seq(StructField("struct", input))),
      timeZone,
      false,
      sqlMetrics,
      jobArtifactUUID,
      None)
    with BasicPythonArrowOutput {

  override protected def runnerConf: Map[String, String] = super.runnerConf ++ settings

  override protected def writeUDF(dataOut: DataOutputStream): Unit =
    PythonUDFRunner.writeUDFs(dataOut, Seq((function, 0L)), Array(Array(0)))

  override protected def writeNextBatchToArrowStream(
      root: VectorSchemaRoot,
      writer: ArrowStreamWriter,
      dataOut: DataOutputStream,
      inputIterator: Iterator[ColumnarBatch]): Boolean =
    if (inputIterator.hasNext) {
      val sentBefore = dataOut.size()
      send(inputIterator.next(), root, dataOut)
      pythonMetrics("pythonDataSent") += dataOut.size() - sentBefore
      true
    } else {
      close()
      false
    }

  private def send(batch: ColumnarBatch, root: VectorSchemaRoot, dataOut: DataOutputStream): Unit = {
    val columns = VectorSchemaRoot.of(places.map(vectorOf(batch, root, _)): _*)
    columns.setRowCount(batch.numRows())
    val bare = new VectorUnloader(columns, true, NoCompressionCodec.INSTANCE, true).getRecordBatch
    try {
      val wrapped = inStruct(bare)
      try MessageSerializer.serialize(new WriteChannel(Channels.newChannel(dataOut)), wrapped)
      finally wrapped.close()
    } finally bare.close()
    // The columns themselves are the source's, which closes them.
  }

  private def vectorOf(batch: ColumnarBatch, root: VectorSchemaRoot, place: Int): FieldVector = {
    val declared = root.getSchema.getFields.get(0).getChildren.get(places.indexOf(place))
    batch.column(place) match {
      case column: ArrowColumnVector
          if ArrowUtils.isCompatibleWithDeclaredField(column.getValueVector.getField, declared) =>
        column.getValueVector.asInstanceOf[FieldVector]
      case other =>
        throw new IllegalStateException(
          s"a column of type ${declared.getType} came as ${other.getClass.getName} of " +
            s"${other.dataType}; set spark.penstock.devices to panes for this query")
    }
  }

  /** The same rows as one column without nulls: a node of its own and an empty bitmap before theirs. */
  private def inStruct(bare: ArrowRecordBatch): ArrowRecordBatch = {
    val nodes = new JArrayList[ArrowFieldNode](bare.getNodes.size + 1)
    nodes.add(new ArrowFieldNode(bare.getLength.toLong, 0L))
    nodes.addAll(bare.getNodes)
    val buffers = new JArrayList[ArrowBuf](bare.getBuffers.size + 1)
    buffers.add(allocator.getEmpty)
    buffers.addAll(bare.getBuffers)
    new ArrowRecordBatch(bare.getLength, nodes, buffers, bare.getBodyCompression, true)
  }
}
