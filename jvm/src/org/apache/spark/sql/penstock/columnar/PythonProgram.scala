// Scala because: Spark's JVM starts the Python workers and must name their interpreter to them.
package org.apache.spark.sql.penstock.columnar

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{ArrayList => JArrayList, HashMap => JHashMap}

import org.apache.spark.SparkEnv
import org.apache.spark.api.python.{ChainedPythonFunctions, PythonBroadcast, SimplePythonFunction}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.penstock.WorkerPython

import penstock.commit.jvm.JvmResources
import penstock.devices.{Interpreter, InterpreterProcess}

/** The interpreter of Spark's Python workers, and what it is to run. */
private[columnar] final case class PythonProgram(executable: String, version: String) {

  /** What a worker is to run: our function, with the description of a pipeline as its argument. */
  def function(pipeline: String): ChainedPythonFunctions = {
    val environment = new JHashMap[String, String]()
    // As PySpark sets them for functions of users, so that workers are shared with them.
    SparkEnv.get.conf.getExecutorEnv.foreach { case (name, value) => environment.put(name, value) }
    environment.put("PYTHONHASHSEED", sys.env.getOrElse("PYTHONHASHSEED", "0"))
    ChainedPythonFunctions(
      Seq(
        new SimplePythonFunction(
          PythonProgram.command(pipeline),
          environment,
          new JArrayList[String](),
          executable,
          version,
          new JArrayList[Broadcast[PythonBroadcast]](),
          null)))
  }
}

private[columnar] object PythonProgram {
  private val Function = "pipeline_function"

  /** That of a query with this setting for devices, tried out; left is why it has none. */
  def of(setting: String): Either[String, PythonProgram] = {
    beginTrial()
    JvmResources.here.workerReadiness.of(setting)
      .map(interpreter => PythonProgram(interpreter.executable, interpreter.version))
  }

  /** Has the interpreter of this driver tried out beside the calling thread. */
  def beginTrial(): Unit = {
    val resources = JvmResources.here
    val env = SparkEnv.get
    val executable = WorkerPython.executable(env.conf)
    resources.interpreter.begin(new InterpreterProcess(executable, WorkerPython.searchPath).tried()) {
      outcome =>
        // Without a cluster the driver is the executor, too.
        resources.machines.tried(env.executorId, outcome.map(_.version))
        outcome.foreach(_.gpu.foreach(resources.machines.hasGpu(env.executorId, _)))
    }
  }

  /**
   * A pickle of the pair that a worker expects, a function and a type, which is none here: the
   * function is what ours returns for the description, called when the worker reads this.
   */
  private[columnar] def command(pipeline: String): Array[Byte] = {
    val bytes = new ByteArrayOutputStream()
    val out = new DataOutputStream(bytes)
    val text = pipeline.getBytes(UTF_8)
    out.writeBytes(s"(c${Interpreter.Module}\n$Function\n")
    out.writeByte('X')
    out.write(ByteBuffer.allocate(Integer.BYTES).order(LITTLE_ENDIAN).putInt(text.length).array())
    out.write(text)
    // A tuple of one, the call, nothing, and a tuple of both.
    out.writeByte(0x85)
    out.writeBytes("RNt.")
    bytes.toByteArray
  }
}
