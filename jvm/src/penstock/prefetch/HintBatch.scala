// Scala because: hints carry the key bytes that state stores on executors are read by.
package penstock.prefetch

/**
 * Keys that a store will soon be asked for.
 *
 * @param run Spark's id of the run
 * @param store the store's folder in the checkpoint location, as RocksDB's `dfsRootDir` has it
 * @param family the column family; `default` where there is none
 * @param keys as `RocksDB.get(key, family)` is given them: without the prefix of the family; they
 *   are kept, so nobody may change them afterwards
 * @param atMs of each key the time at which it will be asked for: event time, else arrival
 * @param due the batch that asks for them; hints that come when it is committed are dropped
 * @param suppressed keys that were not hinted beside these, because they are hot
 * @param followUp what is read once a value is known; whoever has fetched the value hints it
 */
final case class HintBatch(
    run: String,
    store: String,
    family: String,
    candidate: Candidate,
    keys: Array[Array[Byte]],
    atMs: Array[Long],
    due: HintExpiry,
    suppressed: Long = 0,
    followUp: Option[FollowUp] = None)
