package org.apache.spark.sql.execution.streaming.state.contract

/** One clause of the contract. `skip` says why a variant has nothing to show for it. */
final case class Case(name: String, skip: Variant => Option[String], body: StoreRig => Unit)

/** A list of cases that reads as a list of sentences. */
abstract class Cases {
  private val collected = Seq.newBuilder[Case]

  def list: Seq[Case] = collected.result()

  protected def check(name: String, skip: Variant => Option[String] = _ => None)(
      body: StoreRig => Unit): Unit = {
    collected += Case(name, skip, body)
    ()
  }

  protected def rocksDB(variant: Variant): Option[String] =
    Option.when(!variant.isRocksDB)("only RocksDB has it")

  protected def families(variant: Variant): Option[String] =
    Option.when(!variant.families)("column families are off")

  protected def changelog(variant: Variant): Option[String] =
    Option.when(!variant.changelog)("changelogs are off")

  protected def held(variant: Variant): Option[String] =
    Option.when(!variant.queue)("nothing is held back without a release queue")

  protected def full(variant: Variant): Option[String] =
    Option.when(variant.mode != "full")("only mode full takes the commit off the task's path")

  protected def single(variant: Variant): Option[String] =
    Option.when(variant.families)("a load with column families waits for their snapshot")

  protected def direct(variant: Variant): Option[String] =
    Option.when(variant.queue)("with a release queue the store is reached behind the commit")

  /** A clause that no setting of a provider changes is tried with one of them. */
  protected def once(variant: Variant): Option[String] =
    Option.when(variant.name != "ours-changelog")("it is the same for all variants")

  protected def allOf(rules: (Variant => Option[String])*)(variant: Variant): Option[String] =
    rules.flatMap(_(variant)).headOption
}
