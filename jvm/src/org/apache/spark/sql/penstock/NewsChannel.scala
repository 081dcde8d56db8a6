// Scala because: executors ask over Spark's own RPC, whose endpoints are classes of the JVM.
package org.apache.spark.sql.penstock

import scala.concurrent.Future
import scala.concurrent.duration.DurationLong

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.rpc.{RpcCallContext, RpcEnv, RpcTimeout, ThreadSafeRpcEndpoint}
import org.apache.spark.util.RpcUtils

/**
 * Questions to the driver that it may leave open for a while: its plug-in channel answers at once
 * or not at all. Bytes both ways, for the reason that JavaBytes gives.
 *
 * In Spark's package because its RPC is visible there only.
 */
object NewsChannel {
  private val Name = "penstock-news"

  /** On the driver: `hear` is given each question, and what to call with its answer, once. */
  def open(context: SparkContext)(hear: (Array[Byte], Array[Byte] => Unit) => Unit): Unit = {
    context.env.rpcEnv.setupEndpoint(Name, new Endpoint(context.env.rpcEnv, hear))
    ()
  }

  /** On an executor: a question, which is answered within `limitMs` or fails. */
  def toDriver(limitMs: Long): Array[Byte] => Future[Array[Byte]] = {
    val env = SparkEnv.get
    val driver = RpcUtils.makeDriverRef(Name, env.conf, env.rpcEnv)
    val limit = new RpcTimeout(limitMs.millis, s"an open question of $Name")
    bytes => driver.ask[Array[Byte]](bytes, limit)
  }

  private final class Endpoint(
      override val rpcEnv: RpcEnv,
      hear: (Array[Byte], Array[Byte] => Unit) => Unit)
      extends ThreadSafeRpcEndpoint {
    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
      case bytes: Array[Byte] => hear(bytes, answer => context.reply(answer))
    }
  }
}
