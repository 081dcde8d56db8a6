// Scala because: it starts a Python where Spark's JVM will start its workers, as these will be.
package penstock.devices

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit

import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode

import penstock.ShortText
import penstock.wire.{GpuKind, Json, PlanJson}

/**
 * The interpreter of Spark's Python workers, in which our module can be imported.
 *
 * @param gpu that of its machine, if workers can use it
 */
final case class Interpreter(executable: String, version: String, gpu: Option[GpuKind])

object Interpreter {

  /** The module that workers import. */
  val Module = "penstock.devices.worker"
}

/**
 * A try of an interpreter on this machine: a process of it imports our module and tells of itself.
 *
 * @param searchPath where it looks for modules besides its own places
 */
final class InterpreterProcess(
    executable: String,
    searchPath: String,
    limitMs: Long = InterpreterProcess.LimitMs) {
  import InterpreterProcess._

  private val subject = s"$executable, which runs Python workers,"

  /** Left is why it cannot be used. */
  def tried(): Either[String, Interpreter] = {
    val answer = Files.createTempFile("penstock-python", ".out")
    val errors = Files.createTempFile("penstock-python", ".err")
    try
      started(answer, errors) match {
        case Left(reason) => Left(reason)
        case Right(process) =>
          try outcomeOf(process, answer, errors)
          finally { process.destroyForcibly(); () }
      }
    finally {
      Files.deleteIfExists(answer)
      Files.deleteIfExists(errors)
      ()
    }
  }

  /** What it says goes to files: a pipe that nobody empties would hold it up. */
  private def started(answer: Path, errors: Path): Either[String, Process] =
    try {
      val builder = new ProcessBuilder(executable, "-c", Script)
        .redirectOutput(answer.toFile)
        .redirectError(errors.toFile)
      if (searchPath.nonEmpty) builder.environment().put("PYTHONPATH", searchPath)
      val process = builder.start()
      process.getOutputStream.close()
      Right(process)
    } catch { case e: IOException => Left(s"$subject does not start: ${e.getMessage}") }

  private def outcomeOf(process: Process, answer: Path, errors: Path): Either[String, Interpreter] =
    if (!process.waitFor(limitMs, TimeUnit.MILLISECONDS))
      Left(s"$subject did not import ${Interpreter.Module} within $limitMs ms${said(errors)}")
    else if (process.exitValue() != 0)
      Left(s"$subject cannot import ${Interpreter.Module}${said(errors)}")
    else
      Try(Json.readTree(lastLine(answer))).toOption
        .filter(_.hasNonNull("version"))
        .map(interpreterOf)
        .toRight(s"$subject does not tell its version${said(errors)}")

  private def interpreterOf(answer: JsonNode): Interpreter =
    Interpreter(executable, answer.path("version").asText(), PlanJson.gpuOf(answer))

  private def said(errors: Path): String = {
    val last = lastLine(errors)
    if (last.isEmpty) "" else s": ${ShortText.of(last, LineMax)}"
  }
}

object InterpreterProcess {

  /** A machine that starts many things at once imports slowly. */
  val LimitMs = 60000L

  /** Characters of the last line of what a process says in its trouble. */
  private val LineMax = 200

  private val Script =
    s"import sys, msgspec, ${Interpreter.Module}, penstock.devices.gpu_kind as g; " +
      "print(msgspec.json.encode(" +
      "{'version': '%d.%d' % sys.version_info[:2], 'gpu': g.gpu_kind()}).decode())"

  private def lastLine(file: Path): String =
    new String(Files.readAllBytes(file), UTF_8).linesIterator.map(_.trim).filter(_.nonEmpty)
      .foldLeft("")((_, line) => line)
}
