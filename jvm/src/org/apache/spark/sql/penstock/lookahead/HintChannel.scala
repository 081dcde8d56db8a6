// Scala because: executors reach each other's state over Spark's own RPC only, whose endpoints are
// classes of the JVM.
package org.apache.spark.sql.penstock.lookahead

import java.util.concurrent.{ArrayBlockingQueue, ConcurrentHashMap, TimeoutException}
import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.{ExecutionContext, Future}
import scala.concurrent.duration.DurationLong
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.{RpcAddress, RpcCallContext, RpcEndpointRef, RpcEnv, RpcTimeout, ThreadSafeRpcEndpoint}
import org.apache.spark.scheduler.{ExecutorCacheTaskLocation, TaskLocation}
import org.apache.spark.sql.execution.streaming.state.{StateStoreCoordinatorRef, StateStoreProviderId}
import org.apache.spark.util.RpcUtils

import penstock.Clock
import penstock.commit.Workers
import penstock.commit.channel.JavaBytes
import penstock.commit.jvm.{JvmPart, JvmResources}
import penstock.prefetch.{HintBatch, RelayedHints, StatePrefetch}

/**
 * The way of hints to the state of another executor: to the driver, which knows where each store is
 * loaded, and on to an endpoint of that executor, whose reference it has given the driver. Executors
 * cannot call each other. At every step only so many blocks are under way; one more is dropped and
 * counted, which costs reads.
 *
 * The driver opens it with the first batch that has lookahead, an executor with the first task of
 * such a batch that keeps state or hints to another executor.
 *
 * Messages are made of Spark's and Scala's classes, and of bytes, for the reason that JavaBytes gives.
 */
private[lookahead] object HintChannel {
  val Name = "penstock-hints"

  /** Blocks under way from one JVM to another. */
  val UnderWayMax = 64

  /** Blocks that wait on the driver for their way on. */
  val WaitingMax = 512

  /** A hint that takes longer is of no use. */
  val Limit = new RpcTimeout(10.seconds, Name)

  /** On the driver. A local application has all its state in the driver's JVM. */
  def open(context: SparkContext): Unit = if (!context.isLocal) {
    JvmResources.here.parts.of(classOf[HintRelay])(new HintRelay(JvmResources.here.relayed))
      .open(context.env)
  }

  /** On an executor: hints for its state may come from now on. */
  def listen(): Unit = if (SparkEnv.get.executorId != SparkContext.DRIVER_IDENTIFIER) {
    here.way
    ()
  }

  /** From a task: waits for nothing but, once, for the driver to be found. */
  def toDriver(store: StateStoreProviderId, hints: HintBatch): Unit = here.way match {
    case Some(driver) =>
      val untold = JvmResources.here.relayed.takeDropped()
      val isSent = driver.send((store, JavaBytes.encode(hints), untold))
      if (!isSent) JvmResources.here.relayed.dropped(untold + 1)
    case None => JvmResources.here.relayed.dropped(1)
  }

  private def here: HintListener = JvmResources.here.parts.of(classOf[HintListener])(new HintListener)
}

/**
 * One way with a bound on what is under way.
 *
 * @param ask sends a message; the answer says whether it was taken
 * @param onSend called before a message is sent
 * @param onTaken called when it was taken
 * @param onLost called when nobody can be reached on this way any more
 */
private final class HintWay(
    ask: Any => Future[Boolean],
    relayed: RelayedHints,
    onSend: () => Unit = () => (),
    onTaken: () => Unit = () => (),
    onLost: () => Unit = () => ()) {
  private val underWay = new AtomicInteger

  /** False if there is no room. */
  def send(message: Any): Boolean =
    if (underWay.incrementAndGet() > HintChannel.UnderWayMax) {
      underWay.decrementAndGet()
      false
    } else {
      onSend()
      val answer =
        try ask(message)
        catch { case NonFatal(e) => Future.failed(e) }
      answer.onComplete { taken =>
        underWay.decrementAndGet()
        taken match {
          case Success(true) => onTaken()
          case Success(false) => relayed.dropped(1)
          case Failure(e) =>
            relayed.dropped(1)
            // Who is late may answer the next one.
            if (!e.isInstanceOf[TimeoutException]) onLost()
        }
      }(ExecutionContext.parasitic)
      true
    }
}

private object HintWay {
  def asking(endpoint: RpcEndpointRef): Any => Future[Boolean] = endpoint.ask[Boolean](_, HintChannel.Limit)
}

/** On an executor: takes hints for the state of this JVM, and has the way to the driver. */
private final class HintListener extends JvmPart with Logging {
  private var endpoint = Option.empty[(RpcEnv, RpcEndpointRef)]

  /** None if the driver was not found, which is tried once. */
  lazy val way: Option[HintWay] =
    try Some(opened(SparkEnv.get))
    catch {
      case NonFatal(e) =>
        logWarning("hints from and for other executors are dropped here: the driver takes none", e)
        None
    }

  override def close(): Unit = synchronized {
    endpoint.foreach { case (rpc, here) => HintListener.stop(rpc, here) }
    endpoint = None
  }

  private def opened(env: SparkEnv): HintWay = {
    val driver = RpcUtils.makeDriverRef(HintChannel.Name, env.conf, env.rpcEnv)
    val here =
      env.rpcEnv.setupEndpoint(s"${HintChannel.Name}-here", new ExecutorEndpoint(env.rpcEnv))
    endpoint = Some((env.rpcEnv, here))
    val ask = HintWay.asking(driver)
    // Not waited for: until it has come, the driver drops what is for this executor.
    ask((env.executorId, here))
    new HintWay(ask, JvmResources.here.relayed)
  }

  private final class ExecutorEndpoint(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {
    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
      case hints: Array[Byte] =>
        val resources = JvmResources.here
        context.reply(HintListener.take(JavaBytes.decode[HintBatch](hints), resources.prefetch, resources.relayed))
    }
  }
}

private object HintListener {

  /** False if the store is not open here, as when it has moved on meanwhile: the driver counts the drop. */
  def take(hints: HintBatch, prefetch: StatePrefetch, relayed: RelayedHints): Boolean = {
    val isTaken = prefetch.hint(hints)
    if (isTaken) relayed.arrived()
    isTaken
  }

  /** Where Spark has ended its RPC already, there is nothing left to stop. */
  def stop(rpc: RpcEnv, endpoint: RpcEndpointRef): Unit =
    try rpc.stop(endpoint)
    catch { case NonFatal(_) => }
}

private final case class WaitingHints(store: StateStoreProviderId, hints: Array[Byte])

/** An executor that takes hints, and the address that its connection comes from. */
private final case class HintTaker(address: RpcAddress, way: HintWay)

/** On the driver: what came in goes out, on a thread of its own, to where its store is loaded. */
private final class HintRelay(relayed: RelayedHints) extends JvmPart with Logging {
  private val waiting = new ArrayBlockingQueue[WaitingHints](HintChannel.WaitingMax)
  private val executors = new ConcurrentHashMap[String, HintTaker]
  private var endpoint = Option.empty[(RpcEnv, RpcEndpointRef)]
  private var isTried = false
  @volatile private var thread = Option.empty[Thread]

  def open(env: SparkEnv): Unit = synchronized {
    if (!isTried) {
      isTried = true
      try {
        val here = env.rpcEnv.setupEndpoint(HintChannel.Name, new DriverEndpoint(env.rpcEnv))
        endpoint = Some((env.rpcEnv, here))
        val locations = new StoreLocations(env)
        thread = Some(Workers.daemons("penstock-hint-relay").newThread(() => run(locations)))
        thread.foreach(_.start())
      } catch {
        case NonFatal(e) => logWarning("hints for the state of other executors are dropped", e)
      }
    }
  }

  override def close(): Unit = {
    val opened = synchronized(endpoint)
    opened.foreach { case (rpc, here) => HintListener.stop(rpc, here) }
    end()
  }

  /** Takes a block in; false if too many wait. */
  def take(store: StateStoreProviderId, hints: Array[Byte]): Boolean =
    waiting.offer(WaitingHints(store, hints))

  /** An executor can be sent hints from now on, until it disconnects or cannot be reached. */
  def joined(executor: String, address: RpcAddress, ask: Any => Future[Boolean]): Unit = {
    val way = new HintWay(
      ask, relayed, onSend = () => relayed.passedOn(), onTaken = () => relayed.arrived(),
      onLost = () => left(address))
    executors.put(executor, HintTaker(address, way))
    ()
  }

  /** The executor is gone: one that comes in its place joins by itself. */
  def left(address: RpcAddress): Unit = {
    executors.values.removeIf(_.address == address)
    ()
  }

  /** Sends a block to the executor that has its store, if one has. */
  def pass(hints: Array[Byte], executor: Option[String]): Unit = {
    val isSent = executor.flatMap(id => Option(executors.get(id))).exists(_.way.send(hints))
    if (!isSent) relayed.dropped(1)
  }

  /** How many executors take hints. */
  def executorCount: Int = executors.size

  private def end(): Unit = thread.foreach(_.interrupt())

  private def run(locations: StoreLocations): Unit =
    try while (!Thread.currentThread.isInterrupted) {
      val block = waiting.take()
      try pass(block.hints, locations.executorOf(block.store))
      catch { case NonFatal(e) => logDebug("a hint did not get on", e); relayed.dropped(1) }
    } catch { case _: InterruptedException => }

  private final class DriverEndpoint(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {

    /** The answer is false if too many wait. */
    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
      case (executor: String, listener: RpcEndpointRef) =>
        // An executor that takes no connections has no address but that of the one it has made.
        val address = Option(listener.address).getOrElse(context.senderAddress)
        joined(executor, address, HintWay.asking(listener))
        context.reply(true)
      case (store: StateStoreProviderId, hints: Array[Byte], dropped: Long) =>
        relayed.dropped(dropped)
        context.reply(take(store, hints))
    }

    override def onDisconnected(remoteAddress: RpcAddress): Unit = left(remoteAddress)

    override def onStop(): Unit = end()
  }
}

/** Where stores are loaded, as Spark's coordinator has it; asked again after a second. */
private final class StoreLocations(env: SparkEnv) {
  import StoreLocations._

  private lazy val coordinator = StateStoreCoordinatorRef.forExecutor(env)
  private val known = new java.util.LinkedHashMap[StateStoreProviderId, Known](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[StateStoreProviderId, Known]): Boolean =
      size > StoresMax
  }

  def executorOf(store: StateStoreProviderId): Option[String] = {
    val now = JvmResources.here.clock.nanos
    val last = Option(known.get(store)).filter(now - _.atNs < FreshNs)
    last.getOrElse {
      val executor = coordinator.getLocation(store).map(TaskLocation(_)).collect {
        case location: ExecutorCacheTaskLocation => location.executorId
      }
      val fresh = Known(executor, now)
      known.put(store, fresh)
      fresh
    }.executor
  }
}

private object StoreLocations {
  final case class Known(executor: Option[String], atNs: Long)

  val FreshNs: Long = 1000 * Clock.NsInMs
  val StoresMax = 10000
}
