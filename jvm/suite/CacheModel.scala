package penstock.prefetch.contract

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Random

import org.apache.spark.sql.execution.streaming.state.contract.ManualClock

import penstock.prefetch._

/** A RocksDB that is a map, and that knows when it must not be touched. */
final class MapStore extends NativeStore {
  val committed = mutable.Map.empty[String, Int]
  val written = mutable.Map.empty[String, Int]
  var isOpen = true
  var isBroken = false

  /** Called before and after each write: others go on meanwhile. */
  var onWrite: () => Unit = () => ()

  /** The next reads fail. */
  var failures = 0

  override def read(family: String, key: Array[Byte]): Array[Byte] = touched {
    if (failures > 0) {
      failures -= 1
      throw new IllegalStateException("a planned failure")
    }
    written.get(new String(key)).map(CacheModel.bytes).orNull
  }

  override def readAll(family: String, keys: Array[Array[Byte]]): Array[Array[Byte]] =
    keys.map(read(family, _))

  override def write(family: String, key: Array[Byte], value: Array[Byte]): Unit = touched {
    onWrite()
    if (value == null) written -= new String(key)
    else written(new String(key)) = CacheModel.number(value)
    onWrite()
  }

  override def fetchKeysMax: Int = 3

  private def touched[A](body: => A): A = {
    isBroken ||= !isOpen
    body
  }
}

/**
 * One store with a cache, and a plain map of what a task must read, under random steps. Fetches and
 * writes of the pool are taken step by step between those of the task, each held as long as it
 * happens to be, also while RocksDB is written. The same seed gives the same steps.
 */
final class CacheModel(seed: Long, order: String, isBack: Boolean, bytesMax: Long) {
  import CacheModel._

  private val random = new Random(seed)
  private val native = new MapStore
  private val clock = new ManualClock
  private val cache = new StateCache(EvictionOrder.named(order), bytesMax, clock, () => ())
  private var store = newStore()
  private var position = 0L
  private val expected = mutable.Map.empty[String, Int]
  private val story = mutable.ArrayBuffer.empty[String]
  private val chunks = mutable.ArrayBuffer.empty[Held]
  private var nextValue = 0

  /** With few of them the same key is written, fetched and evicted time and again. */
  private val keys = if (seed % 2 == 0) Keys else FewKeys
  store.open()
  native.onWrite = () => (1 to random.nextInt(8)).foreach(_ => beside())

  private def newStore(): StoreCache = new StoreCache(
    "run", "store", native, cache, clock, isBack, (_, _) => (), () => Map("stream" -> position))

  def play(steps: Int): Unit =
    try (1 to steps).foreach { _ =>
      step()
      clock.turn(random.nextInt(3).toLong)
      cache.check()
      if (native.isBroken) throw new IllegalStateException("RocksDB was touched while it was closed")
    } catch {
      case e: Throwable =>
        throw new IllegalStateException(
          s"seed $seed, $order, back $isBack, $bytesMax bytes: ${e.getMessage}; before that: " +
            story.takeRight(40).mkString(", "),
          e)
    }

  private def step(): Unit = random.nextInt(24) match {
    case 0 | 1 | 2 | 3 => get(key())
    case 4 => exists(key())
    case 5 | 6 | 7 => put(key())
    case 8 => remove(key())
    case 9 => scan()
    case 10 => commit()
    case 11 => abort()
    case 12 => reload()
    case 13 | 14 | 15 => hint()
    case 16 => merge(key())
    case 17 => scanRead(key())
    case 18 => if (random.nextInt(4) == 0) native.failures = 1
    case 19 => if (random.nextInt(8) == 0) retire()
    case _ => beside()
  }

  private def get(key: String): Unit = inStory(s"get $key") {
    land(key)
    native.failures = 0
    same(s"get $key", read(key, fills = true), expected.get(key))
  }

  private def exists(key: String): Unit = inStory(s"exists $key") {
    land(key)
    native.failures = 0
    same(s"exists $key", store.exists(Family, key.getBytes, fills = true), expected.contains(key))
  }

  /** As an operator reads that evicts. */
  private def scanRead(key: String): Unit = inStory(s"scan-get $key") {
    native.failures = 0
    store.takeCounts()
    val before = (cache.bytes, marks)
    same(s"get $key", read(key, fills = false), expected.get(key))
    same("bytes cached by a scan, and the times and pins of what is cached", (cache.bytes, marks), before)
    val counts = store.takeCounts()
    same("hits, misses and uses that a scan counts", (counts.hits, counts.misses, counts.used.values.sum), (0L, 0L, 0L))
  }

  /** Of each cached entry what a read by a row would change. */
  private def marks: Set[(String, Long, Boolean, Boolean, Int, Boolean)] =
    store.entries.values.asScala.map { entry =>
      (new String(entry.bytes), entry.atMs, entry.isPinned, entry.isLeaving, entry.turn, entry.isReferenced)
    }.toSet

  private def put(key: String): Unit = inStory(s"put $key ${nextValue + 1}") {
    nextValue += 1
    store.write(Family, key.getBytes, bytes(nextValue))
    expected(key) = nextValue
  }

  private def remove(key: String): Unit = inStory(s"remove $key") {
    store.write(Family, key.getBytes, null)
    expected -= key
  }

  private def merge(key: String): Unit = inStory(s"merge $key") {
    nextValue += 1
    store.around(Family, key.getBytes)(native.write(Family, key.getBytes, bytes(nextValue)))
    expected(key) = nextValue
  }

  private def scan(): Unit = inStory("scan") {
    store.writeOut()
    same("a scan", native.written.toMap, expected.toMap)
  }

  private def commit(): Unit = inStory("commit") {
    position += 1
    store.endBatch()
    same("what is committed", native.written.toMap, expected.toMap)
    native.committed.clear()
    native.committed ++= native.written
  }

  /** Aborted writes stay in the open RocksDB until it is loaded again. */
  private def abort(): Unit = inStory("abort") {
    leaveNative()
    store.shut()
    expected.clear()
    expected ++= native.committed
    if (random.nextBoolean()) hint()
    if (random.nextBoolean()) beside()
    reopen()
  }

  /** At the last commit, as another attempt of a task does. */
  private def reload(): Unit = inStory("reload") {
    leaveNative()
    store.shut()
    expected.clear()
    expected ++= native.committed
    reopen()
  }

  /** The run is over, and its task is still at work. */
  private def retire(): Unit = inStory("retire")(store.retire())

  private def reopen(): Unit = {
    if (store.isOver) renew()
    native.isOpen = false
    chunks.toSeq.filterNot(_.isRead).foreach { chunk =>
      advance(chunk)
      if (!chunk.isRead) advance(chunk)
    }
    native.written.clear()
    native.written ++= native.committed
    native.isOpen = true
    store.open()
  }

  /** As a load does. */
  private def renew(): Unit = {
    chunks.toSeq.foreach(finish)
    store.close()
    store = newStore()
  }

  /** `shut` waits for whoever is inside, and here nobody else would let them out. */
  private def leaveNative(): Unit = chunks.filter(_.isInside).toSeq.foreach(finish)

  private def finish(chunk: Held): Unit = while (chunks.contains(chunk)) advance(chunk)

  private def hint(): Unit = inStory("hint") {
    val keys = Array.fill(1 + random.nextInt(5))(key().getBytes)
    val candidate = Candidate.all(random.nextInt(Candidate.all.size))
    // Of the batch under way, or one that is committed.
    val batch = store.batchNow - (if (random.nextInt(8) == 0) 1 else 0)
    val readBy = Option.when(candidate == Candidate.A)(LogPosition("stream", position + random.nextInt(4)))
    store.hint(HintBatch(
      "run", "store", Family, candidate, keys, keys.map(_ => random.nextInt(100).toLong),
      HintExpiry.of(candidate, batch, readBy)))
  }

  /** A thread of the pool takes something, or goes on by one step. */
  private def beside(): Unit =
    if (chunks.nonEmpty && random.nextInt(3) > 0) advance(chunks(random.nextInt(chunks.size)))
    else cache.nextWork(threads = 2).foreach {
      case chunk: FetchChunk =>
        story += "take"
        chunks += new Held(chunk)
      case write =>
        story += "write"
        write.perform()
    }

  private def advance(chunk: Held): Unit = {
    story += s"fetch goes on from ${chunk.steps}"
    if (chunk.advance()) chunks -= chunk
  }

  /** The task would wait for a fetch of the key: it is brought to its end, as its thread would. */
  private def land(key: String): Unit =
    chunks.filter(_.hasKey(key)).toSeq.foreach(finish)

  private def read(key: String, fills: Boolean): Option[Int] =
    Option(store.get(Family, key.getBytes, fills)).map(number)

  private def key(): String = s"k${random.nextInt(keys)}"

  private def inStory(act: String)(body: => Unit): Unit = {
    story += act
    body
  }

  private def same[A](name: String, got: A, wanted: A): Unit =
    if (got != wanted) throw new IllegalStateException(s"$name is $got, expected $wanted")
}

/** A fetch that is held after each of its steps. */
private final class Held(chunk: FetchChunk) {
  var steps = 0
  var isInside = false
  var isRead = false

  def hasKey(key: String): Boolean = chunk.fetches.exists(fetch => new String(fetch.bytes) == key)

  /** Whether that was its last step. */
  def advance(): Boolean = {
    steps += 1
    steps match {
      case 1 =>
        isInside = chunk.begin()
        false
      case 2 =>
        if (isInside) chunk.read()
        isRead = true
        false
      case _ =>
        chunk.end()
        true
    }
  }
}

object CacheModel {
  val Family = "default"
  val Keys = 12
  val FewKeys = 3

  /** Some are much larger than others: for those there is sometimes no room. */
  def bytes(number: Int): Array[Byte] =
    (number.toString + " " * (if (number % 5 == 0) 200 else 0)).getBytes

  def number(bytes: Array[Byte]): Int = new String(bytes).trim.toInt

  /** Many short histories for each way the cache can be set, down to one entry. */
  def playAll(histories: Int, steps: Int): Unit =
    for {
      order <- Seq("timestamp", "lru", "clock")
      isBack <- Seq(false, true)
      bytesMax <- Seq(150L, 300L, 700L, 100000L)
      seed <- 1 to histories
    } new CacheModel(seed.toLong, order, isBack, bytesMax).play(steps)
}
