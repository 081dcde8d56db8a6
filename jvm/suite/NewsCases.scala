package org.apache.spark.sql.execution.streaming.state.contract

import java.util.concurrent.atomic.{AtomicBoolean, AtomicReference}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}

import penstock.checkpoint.location.StateFile
import penstock.commit.{Changes, PieceDurable, PieceWritten}
import penstock.commit.channel._
import penstock.commit.driver.OpenQuestions
import penstock.commit.executor.{Arrival, FarExecutor}
import penstock.commit.jvm.JvmResources
import penstock.settings.CommitSettings

import Checks._

/** Executors hear of what the driver decides when it does, and do not ask again and again. */
object NewsCases extends Cases {
  private val Tasks = 20
  private val WaitMs = 300000L
  private val Writer = "1"
  private val Id = "0a1b2c3d"

  private def resources: JvmResources = JvmResources.here

  private def far(): FarExecutor = new FarExecutor(resources.releases, resources.openQuestions)

  check("tasks_at_a_gate_share_one_question_that_is_open_until_there_is_news", allOf(once, held)) { rig =>
    val executor = far()
    rig.location.hold(0)
    rig.begin(0)
    val tasks = Seq.fill(Tasks)(aside(executor.copier.await(rig.queue.run, WaitMs)(_.released >= 0)))
    eventually("all wait")(tasks.forall(_.thread.getState == Thread.State.TIMED_WAITING))
    Thread.sleep(500)
    equal("messages while nothing happens", executor.messages.get, 2)
    equal("open questions", resources.openQuestions.size, 1)
    rig.location.letGo()
    tasks.foreach(_.join())
    holds(s"few messages: ${executor.messages.get}")(executor.messages.get <= 6)
  }

  check("what_waits_for_its_run_is_started_by_news_and_not_by_asking", allOf(once, held)) { rig =>
    val executor = far()
    val started = new AtomicReference[String]("")
    rig.location.hold(0)
    rig.begin(0)
    executor.copier.whenReleased(rig.queue.run, 0)(started.set("released"))
    Thread.sleep(500)
    equal("what was started", started.get, "")
    equal("messages while nothing happens", executor.messages.get, 2)
    rig.location.letGo()
    eventually("it is started")(started.get == "released")
  }

  check("a_task_is_not_answered_with_what_held_before_it_wrote", allOf(once, held)) { rig =>
    val executor = far()
    val run = rig.queue.run
    rig.begin(0)
    executor.copier.awaitState(run, 0, WaitMs)
    rig.queue.receive(Wrote(run, PieceWritten(0, "p", Writer, 1)))
    val task = aside(executor.copier.awaitState(run, 0, WaitMs))
    eventually("it waits")(task.thread.getState == Thread.State.TIMED_WAITING)
    holds("it is not over")(!task.isOver)
    rig.queue.receive(MadeDurable(run, Seq(Durable(PieceDurable(0, "p", Writer, 1), Nil, Map.empty))))
    task.join()
  }

  check("who_waits_for_a_run_that_has_ended_is_told", allOf(once, held)) { rig =>
    val executor = far()
    val run = rig.queue.run
    val task = aside(executor.copier.await(run, WaitMs)(_.released >= 7))
    eventually("it waits")(task.thread.getState == Thread.State.TIMED_WAITING)
    resources.endRun(run)
    fails("the wait", "has ended")(task.join())
    executor.forgetRun(run)
    equal("what is known of it", executor.news.runs, Set.empty[String])
  }

  check("a_load_of_what_another_executor_writes_hears_of_it_and_asks_no_more", allOf(once, held)) { rig =>
    val executor = far()
    val run = rig.queue.run
    val file = StateFile.of(new HadoopPath(s"${rig.root.toUri}/state/0/0/1_$Id.changelog")).get
    val isThere = new AtomicBoolean(false)
    rig.begin(0)
    eventually("the offsets are there")(rig.location.has("offsets/0"))
    rig.location.hold(0)
    rig.queue.commitWritten(0, Array.emptyByteArray, Set(Id))
    val load = aside(executor.questions.awaitArrival(run, file, new CommitSettings(new Configuration))(isThere.get))
    eventually("it waits")(load.thread.getState == Thread.State.TIMED_WAITING)
    Thread.sleep(1500)
    equal("messages while nothing happens", executor.messages.get, 3)
    isThere.set(true)
    rig.queue.receive(MadeDurable(run, Seq(Durable(PieceDurable(0, Id, Writer, 1), Nil, Map.empty))))
    equal("where it is", load.join(), Some(Arrival.InLocation))
    holds(s"few messages: ${executor.messages.get}")(executor.messages.get <= 6)
    executor.forgetRun(run)
  }

  check("an_open_question_is_answered_all_the_same_after_a_while", once) { _ =>
    val clock = new ManualClock
    val open = new OpenQuestions(new Changes(clock), _ => NotReleasing)
    val answered = new AtomicReference[Option[Answer]](None)
    open.add(WhenOther(HowFar("run"), NotReleasing))(answer => answered.set(Some(answer)))
    clock.awaitSleeper()
    equal("what is answered at once", answered.get, None)
    while (answered.get.isEmpty) {
      clock.turn(ms = 1000)
      Thread.sleep(1)
    }
    holds("not before its time")(clock.wallMs >= OpenQuestions.HoldMs)
    equal("open questions", open.size, 0)
  }
}
