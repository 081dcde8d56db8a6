package penstock.devices

import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.{ConcurrentLinkedQueue, CountDownLatch}
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks, ManualClock}

import penstock.Clock
import penstock.wire.{GpuKind, MachineKind}

import Checks._

/** Interpreters of Python workers: how they are tried out, and when again. */
object InterpreterCases extends Cases {
  private val TrialAnswer = """{"version": "3.12", "gpu": {"name": "y", "cuda": "13.0", "count": 2, "bytes": 9}}"""
  private val Works = Interpreter("python3", "3.12", None)

  /** Calls the body with a program that is started as an interpreter is. */
  private def withProgram[A](lines: String*)(body: String => A): A = {
    val file = Files.createTempFile("penstock-program", ".sh")
    Files.writeString(file, ("#!/bin/sh" +: lines).mkString("", "\n", "\n"))
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"))
    try body(file.toString)
    finally Files.delete(file)
  }

  private def tried(executable: String, limitMs: Long = 60000): Either[String, Interpreter] =
    new InterpreterProcess(executable, "/some/modules", limitMs).tried()

  private def reason(limitMs: Long, lines: String*): String =
    withProgram(lines: _*)(tried(_, limitMs).left.getOrElse(""))

  check("an_interpreter_tells_its_version_and_the_gpu_of_its_machine", once) { _ =>
    val lines = Seq("echo noise", "[ $PYTHONPATH = /some/modules ] || exit 7", s"echo '$TrialAnswer'")
    withProgram(lines: _*) { python =>
      val gpu = GpuKind("y", "13.0", 2, 9)
      equal("what it is", tried(python), Right(Interpreter(python, "3.12", Some(gpu))))
    }
  }

  check("the_reason_says_whether_an_interpreter_failed_or_was_too_slow_and_its_last_line", once) { _ =>
    val failed = reason(60000, "echo Traceback >&2", "echo 'ModuleNotFoundError: no penstock' >&2", "exit 1")
    holds(s"it failed: $failed")(
      failed.endsWith("cannot import penstock.devices.worker: ModuleNotFoundError: no penstock"))
    val slow = reason(200, "echo 'still at it' >&2", "exec sleep 60")
    holds(s"it was too slow: $slow")(slow.contains("within 200 ms: still at it"))
    val dumb = reason(60000, "echo hello")
    holds(s"it says something else: $dumb")(dumb.endsWith("does not tell its version"))
    val absent = tried("/nowhere/python").left.getOrElse("")
    holds(s"there is none: $absent")(absent.contains("does not start"))
  }

  check("a_try_that_failed_is_repeated_after_pauses_that_grow_until_it_works", once) { _ =>
    val clock = new ManualClock
    val trial = new InterpreterTrial(clock)
    val tries = new AtomicInteger()
    val outcomes = new ConcurrentLinkedQueue[InterpreterTrial.Outcome]()
    def attempt(): InterpreterTrial.Outcome = tries.incrementAndGet() match {
      case 1 => throw new IllegalStateException("no room")
      case 2 => Left("too slow")
      case _ => Right(Works)
    }
    equal("before it begins", trial.awaited, None)
    trial.begin(attempt())(outcome => { outcomes.add(outcome); () })
    trial.begin(throw new IllegalStateException("it has begun"))(_ => ())
    holds("what is thrown is a reason")(trial.awaited.exists(_.left.exists(_.contains("no room"))))
    var pauseMs = InterpreterTrial.FirstPauseMs
    Seq(2, 3).foreach { number =>
      clock.awaitSleeper()
      clock.turn(pauseMs - 1)
      Thread.sleep(20)
      equal("tries before the pause is over", tries.get, number - 1)
      clock.turn(1)
      eventually(s"there is try $number")(outcomes.size == number)
      pauseMs *= 2
    }
    eventually("it works")(trial.known.contains(Right(Works)))
    equal("what was told", outcomes.asScala.toSeq.map(_.isRight), Seq(false, false, true))
    trial.close()
  }

  check("a_try_that_is_under_way_ends_with_its_owner", once) { _ =>
    val trial = new InterpreterTrial(Clock.System)
    val begun = new CountDownLatch(1)
    trial.begin {
      begun.countDown()
      withProgram("exec sleep 60")(tried(_))
    }(_ => ())
    begun.await()
    equal("what is known meanwhile", trial.known, None)
    trial.close()
    eventually("its thread has ended", limitMs = 20000) {
      !Thread.getAllStackTraces.keySet.asScala.exists { thread =>
        thread.getStackTrace.exists(_.getClassName == classOf[InterpreterTrial].getName)
      }
    }
    trial.begin(Right(Works))(_ => ())
    holds("nothing is tried after that")(!trial.awaited.exists(_.isRight))
  }

  check("a_query_that_asks_for_workers_has_them_before_executors_have_told_and_no_other_does", once) { _ =>
    val machines = new Machines
    val trial = new InterpreterTrial(Clock.System)
    val readiness = new WorkerReadiness(trial, machines)
    val offered = OfferedPipeline(0, new Object, Nil, windows = 2)
    holds("nothing is known")(readiness.whyNot(offered, "auto").exists(_.contains("not known yet")))
    machines.started("1")
    trial.begin(Right(Works))(_ => ())
    equal("where they are asked for", readiness.of("cpu"), Right(Works))
    holds("an executor has not told")(readiness.whyNot(offered, "auto").exists(_.contains("executor 1")))
    machines.reported("1", MachineKind("cpu x", 2), Some(Right("3.12")))
    equal("once it has", readiness.whyNot(offered, "auto"), None)
    val left = offered.copy(leftToSpark = Some("upper"))
    equal("of what does not translate", readiness.whyNot(left, "auto"), Some("upper"))
    machines.reported("1", MachineKind("cpu x", 2), Some(Left("it cannot")))
    holds("it cannot any more")(readiness.of("cpu").isLeft && readiness.of("auto").isLeft)
    trial.close()
  }
}
