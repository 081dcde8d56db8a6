package org.apache.spark.sql.execution.streaming.state.contract

import java.io.{File, IOException}
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import penstock.commit.executor.{HeldState, LocalFile}
import penstock.commit.jvm.JvmResources

import Checks._
import Rows._

/** Room on the local disk, and the files a store keeps there. */
object LocalSpaceCases extends Cases {
  check("a_full_local_disk_is_an_error_that_names_the_folder_and_the_setting", held) { _ =>
    val full = new LocalFile(new File("/dev/full"))
    val error = fails("writing to a full disk", "No space left", "/dev", "spark.penstock.local.dir") {
      full.write(new Array[Byte](1 << 16), 0, 1 << 16)
    }
    holds("it is an error of the disk")(error.isInstanceOf[IOException])
  }

  check("a_writer_waits_while_more_state_is_held_than_there_is_room_for", allOf(held, changelog)) { rig =>
    atRest()
    rig.restartWith(localBytes = 1)
    val providers = Seq(0, 1).map(n => rig.provider(partition = n, minDeltas = 100))
    val first = providers.map(rig.getStore(_, 0))
    rig.begin(0)
    first.foreach(rig.commitTask)
    rig.end(0, first.map(_.id))
    rig.settle()
    rig.location.hold(1)
    rig.begin(1)
    val store = rig.getStore(providers.head, 1)
    put(store, ("a", 1) -> 1)
    rig.commitTask(store)
    val other = aside(rig.getStore(providers(1), 1))
    eventually("it waits for room")(Threads.isAnyIn(classOf[HeldState].getName, "awaitSpace"))
    rig.location.letGo()
    rig.commitTask(other.join())
    rig.end(1, providers.map(_.stateStoreId))
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1): Pairs)
  }

  check("a_writer_that_finds_no_room_fails_with_the_setting", allOf(held, changelog)) { rig =>
    atRest()
    rig.restartWith(retrySeconds = 1, localBytes = 1)
    val providers = Seq(0, 1).map(n => rig.provider(partition = n, minDeltas = 100))
    rig.location.hold(0)
    rig.begin(0)
    rig.commitTask(rig.getStore(providers.head, 0))
    fails("opening another", "spark.penstock.local.maxBytes")(rig.getStore(providers(1), 0))
  }

  check("a_folder_stays_locked_when_another_setting_names_its_parent_as_well", allOf(held, changelog)) {
    rig =>
      rig.batch(rig.provider(), 0, ("a", 1) -> 1)
      val locks = rig.localLocks
      holds("its folder is locked")(locks.nonEmpty && locks.forall(isLocked))
      rig.restartWith(localFolder = s"${rig.name}/../held")
      rig.batch(rig.provider(), 1, ("b", 2) -> 2)
      holds("all are locked")(rig.localLocks.size > locks.size && rig.localLocks.forall(isLocked))
  }

  /** Runs that are over, of other cases too, leave nothing here. */
  private def atRest(): Unit = eventually("nothing is held")(JvmResources.here.heldState.heldBytes == 0)

  /** As Linux tells everybody. */
  private def isLocked(file: Path): Boolean = {
    val inode = Files.getAttribute(file, "unix:ino").toString
    Files.readAllLines(Path.of("/proc/locks")).asScala.exists(_.contains(s":$inode "))
  }
}
