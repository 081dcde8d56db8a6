package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.hadoop.fs.Path

import penstock.checkpoint.location.StateFile
import penstock.commit.executor.{HeldPieceEvent, HeldPieceState}
import penstock.commit.jvm.JvmResources

import Checks._

/** The states of one write of a piece, and what leads from one to the next. */
object PieceLifeCases extends Cases {
  import HeldPieceEvent._
  import HeldPieceState._

  private val events: Seq[HeldPieceEvent] = Seq(
    Announce, FileClosed(isWhole = false), FileClosed(isWhole = true), Cancelled, NewerWrite,
    CopyEnded, AppliedInLog, DurableInLog, DurableInLocation, BatchCopied, BatchWithoutIt,
    SpaceNeeded, RunEnded)

  /** Per state of a write that is not over, what its events lead to; what is not here is a bug. */
  private val table: Map[HeldPieceState, Map[HeldPieceEvent, HeldPieceState]] = Map(
    Begun -> Map(
      Announce -> Announced,
      FileClosed(isWhole = false) -> Begun,
      FileClosed(isWhole = true) -> Complete,
      Cancelled -> Dropped,
      BatchCopied -> Dropped),
    Announced -> Map(
      Announce -> Announced,
      FileClosed(isWhole = false) -> Announced,
      FileClosed(isWhole = true) -> Complete,
      Cancelled -> Dropped),
    Complete -> Map(CopyEnded -> Copied, AppliedInLog -> Applied, DurableInLog -> Durable),
    Copied -> Map(CopyEnded -> Copied, DurableInLocation -> InLocation),
    Applied -> Map(AppliedInLog -> Applied, DurableInLog -> Durable, BatchCopied -> InLocation),
    Durable -> Map(
      AppliedInLog -> Durable,
      DurableInLog -> Durable,
      DurableInLocation -> InLocation,
      BatchCopied -> InLocation,
      SpaceNeeded -> Dropped))

  private def expected(state: HeldPieceState, event: HeldPieceEvent): Option[HeldPieceState] =
    event match {
      case _ if state.isOver => Some(state)
      case NewerWrite => Some(Superseded)
      case BatchWithoutIt | RunEnded => Some(Dropped)
      case FileClosed(_) if Set[HeldPieceState](Complete, Copied, Applied, Durable)(state) => Some(state)
      case _ => table(state).get(event)
    }

  check("a_write_moves_as_the_table_says_and_in_no_other_way", once) { _ =>
    for (state <- HeldPieceState.all; event <- events) {
      equal(s"$event in $state", HeldPieceState.next(state, event), expected(state, event))
    }
  }

  check("every_state_can_be_reached_and_left", once) { _ =>
    val steps = for {
      state <- HeldPieceState.all
      event <- events
      next <- HeldPieceState.next(state, event) if next != state
    } yield (state, next)
    equal("what is reached", steps.map(_._2).toSet + Begun, HeldPieceState.all.toSet)
    equal("what is left", steps.map(_._1).toSet, HeldPieceState.all.filterNot(_.isOver).toSet)
  }

  check("an_event_that_cannot_happen_is_a_bug_that_tells_the_story", held) { rig =>
    val held = JvmResources.here.heldState
    val path = new Path(s"${rig.root.toUri}/state/0/7/1.zip")
    val piece = rig.expectSnapshot(path, StateFile.of(path).get).piece
    fails("a copy of what is not complete", "held_piece", "1.zip", "Begun, Announce -> Announced") {
      held.tell(piece, CopyEnded)
    }
    equal("its state", piece.state, Announced)
    held.tell(piece, BatchWithoutIt)
    equal("its state", piece.state, Dropped)
  }
}
