// Scala because: executors reach each other's state over Spark's own RPC only, whose endpoints are
// classes of the JVM.
package org.apache.spark.sql.penstock.lookahead

import java.util.concurrent.{ArrayBlockingQueue, ConcurrentHashMap}
import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.{ExecutionContext, Future}
import scala.concurrent.duration.DurationLong
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.{RpcCallContext, RpcEndpointRef, RpcEnv, RpcTimeout, ThreadSafeRpcEndpoint}
import org.apache.spark.scheduler.{ExecutorCacheTaskLocation, TaskLocation}
import org.apache.spark.sql.execution.streaming.state.{StateStoreCoordinatorRef, StateStoreProviderId}
import org.apache.spark.util.RpcUtils

import penstock.Clock
import penstock.commit.Workers
import penstock.commit.channel.JavaBytes
import penstock.commit.jvm.{JvmPart, JvmResources}
import penstock.prefetch.{HintBatch, RelayedHints}

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
 * @param ask sends a message; the answer says whether there was room for it
 * @param onTaken called when there was
 */
private final class HintWay(
    ask: Any => Future[Boolean],
    relayed: RelayedHints,
    onTaken: () => Unit = () => ()) {
  private val underWay = new AtomicInteger

  /** False if there is no room. */
  def send(message: Any): Boolean =
    if (underWay.incrementAndGet() > HintChannel.UnderWayMax) {
      underWay.decrementAndGet()
      false
    } else {
      try
        ask(message).onComplete { answer =>
          underWay.decrementAndGet()
          answer match {
            case Success(true) => onTaken()
            case Success(false) | Failure(_) => relayed.dropped(1)
          }
        }(ExecutionContext.parasitic)
      catch { case NonFatal(_) => underWay.decrementAndGet(); relayed.dropped(1) }
      true
    }
}

private object HintWay {
  def to(endpoint: RpcEndpointRef, onTaken: () => Unit = () => ()): HintWay =
    new HintWay(endpoint.ask[Boolean](_, HintChannel.Limit), JvmResources.here.relayed, onTaken)
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
    driver.send((env.executorId, here))
    HintWay.to(driver)
  }

  private final class ExecutorEndpoint(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {
    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
      case hints: Array[Byte] =>
        val batch = JavaBytes.decode[HintBatch](hints)
        val isTaken = JvmResources.here.prefetch.hasStore(batch.run)
        JvmResources.here.prefetch.hint(batch)
        if (isTaken) JvmResources.here.relayed.arrived()
        context.reply(isTaken)
    }
  }
}

private object HintListener {

  /** Where Spark has ended its RPC already, there is nothing left to stop. */
  def stop(rpc: RpcEnv, endpoint: RpcEndpointRef): Unit =
    try rpc.stop(endpoint)
    catch { case NonFatal(_) => }
}

private final case class WaitingHints(store: StateStoreProviderId, hints: Array[Byte])

/** On the driver: what came in goes out, on a thread of its own, to where its store is loaded. */
private final class HintRelay(relayed: RelayedHints) extends JvmPart with Logging {
  private val waiting = new ArrayBlockingQueue[WaitingHints](HintChannel.WaitingMax)
  private val executors = new ConcurrentHashMap[String, HintWay]
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

  private def end(): Unit = thread.foreach(_.interrupt())

  private def run(locations: StoreLocations): Unit =
    try while (!Thread.currentThread.isInterrupted) {
      val block = waiting.take()
      try pass(block, locations)
      catch { case NonFatal(e) => logDebug("a hint did not get on", e); relayed.dropped(1) }
    } catch { case _: InterruptedException => }

  private def pass(block: WaitingHints, locations: StoreLocations): Unit = {
    val to = locations.executorOf(block.store).flatMap(id => Option(executors.get(id)))
    if (to.exists(_.send(block.hints))) relayed.passedOn()
    else relayed.dropped(1)
  }

  private final class DriverEndpoint(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {
    override def receive: PartialFunction[Any, Unit] = {
      case (executor: String, listener: RpcEndpointRef) =>
        executors.put(executor, HintWay.to(listener, () => relayed.arrived()))
        ()
    }

    /** The answer is false if too many wait. */
    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
      case (store: StateStoreProviderId, hints: Array[Byte], dropped: Long) =>
        relayed.dropped(dropped)
        context.reply(take(store, hints))
    }

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
