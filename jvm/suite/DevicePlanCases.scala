package penstock.devices

import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks}
import org.apache.spark.sql.penstock.StreamThread

import penstock.observe.ScanTasks
import penstock.wire._

import Checks._

/** Planning without a query: what is offered, which path is taken, and what is reported of it. */
object DevicePlanCases extends Cases {
  private val stream = new Object

  private def offer(operator: Long): OfferedPipeline = OfferedPipeline(operator, stream, Nil, windows = 12)

  private def plan(path: String, devices: String*): BatchPlan = BatchPlan(
    path,
    "a case says so",
    devices.map(PlannedOperation("filter", _, "", None)),
    None,
    "ours",
    isProbe = false,
    mustNotFallBack = false,
    bytes = 1000)

  check("a_setting_other_than_auto_comes_before_any_plan", once) { _ =>
    val columnar = Some(plan(BatchPlan.Columnar, "cpu", "gpu"))
    equal("panes", PathChoice.of("panes", columnar), PathChoice.ByPanes)
    holds("spark is as Spark plans it")(PathChoice.of("spark", columnar).isInstanceOf[PathChoice.BySpark])
    equal(
      "cpu",
      PathChoice.of("cpu", Some(plan(BatchPlan.Panes))),
      PathChoice.InWorkers(Seq("cpu"), mustNotFallBack = false, isForced = true))
    equal(
      "gpu",
      PathChoice.of("gpu", None),
      PathChoice.InWorkers(Seq("gpu"), mustNotFallBack = true, isForced = true))
  }

  check("auto_is_what_the_plan_says_and_panes_without_one", once) { _ =>
    equal("without a plan", PathChoice.of("auto", None), PathChoice.ByPanes)
    equal("panes", PathChoice.of("auto", Some(plan(BatchPlan.Panes))), PathChoice.ByPanes)
    equal("a path that is not known", PathChoice.of("auto", Some(plan("teleport"))), PathChoice.ByPanes)
    equal(
      "both devices",
      PathChoice.of("auto", Some(plan(BatchPlan.Columnar, "cpu", "gpu"))),
      PathChoice.InWorkers(Seq("cpu", "gpu"), mustNotFallBack = false, isForced = false))
    PathChoice.of("auto", Some(plan(BatchPlan.Spark))) match {
      case PathChoice.BySpark(reason) => holds("the reason is the plan's")(reason.contains("a case says so"))
      case other => equal("spark", other.toString, "BySpark")
    }
  }

  check("the_first_aggregate_that_was_offered_is_planned_and_no_other", once) { _ =>
    val plans = new RunPlans
    plans.answeredWith(Some(plan(BatchPlan.Panes)))
    equal("before an offer", plans.planFor(3), None)
    plans.offers(offer(3))
    plans.offers(offer(5))
    equal("what is offered", plans.offered.map(_.operator), Some(3L))
    equal("another one has no plan", plans.planFor(5), None)
    equal("this one has", plans.planFor(3).map(_.path), Some(BatchPlan.Panes))
    plans.answeredWith(None)
    equal("after an answer without a plan", plans.planFor(3), None)
  }

  check("a_batch_is_reported_once_and_those_that_nobody_asks_for_are_bounded", once) { _ =>
    val plans = new RunPlans
    val (columnar, panes) = (plan(BatchPlan.Columnar, "cpu"), plan(BatchPlan.Panes))
    val gpu = GpuKind("gpu y", "13.0", 1, 1024)
    val sums = WorkerSums(Map((0, "cpu") -> OperationSum(2500, 100, 10, 2)), gpus = Map("7" -> gpu))
    plans.runs(1, BatchPlan.Columnar, columnar, () => sums)
    plans.runs(2, BatchPlan.Panes, panes, () => WorkerSums.Empty)
    val report = plans.report(1, ScanTasks(2, 40, 60)).get
    equal("the bytes are the plan's", report.bytes, 1000L)
    equal("the way to the workers and back", report.workerMs, 37.5)
    equal("again", plans.report(1, ScanTasks(2, 40, 60)), None)
    equal("the way to no worker", plans.report(2, ScanTasks(2, 40, 60)).map(_.workerMs), Some(0.0))
    equal("a GPU that a worker told of", plans.gpus, Map("7" -> gpu))
    (1L to 100L).foreach(plans.runs(_, BatchPlan.Panes, panes, () => WorkerSums.Empty))
    equal("an old one", plans.report(30, ScanTasks(1, 1, 1)), None)
    holds("the last one is there")(plans.report(100, ScanTasks(1, 1, 1)).isDefined)
  }

  check("a_rule_that_is_run_again_for_a_batch_took_what_both_runs_of_it_did", once) { _ =>
    val plans = new RunPlans
    val panes = plan(BatchPlan.Panes)
    plans.ruleTook(1, 8.0)
    Seq(2.0, 3.0).foreach { ms =>
      plans.runs(1, BatchPlan.Panes, panes, () => WorkerSums.Empty)
      plans.ruleTook(1, ms)
    }
    equal("one that runs on a path", plans.report(1, ScanTasks(1, 1, 1)).map(_.ruleMs), Some(5.0))
  }

  check("a_batch_that_workers_could_not_make_is_reported_as_it_ran_and_no_more_are_offered_to_them", once) { _ =>
    val plans = new RunPlans
    val columnar = plan(BatchPlan.Columnar, "cpu")
    val sums = WorkerSums(Map((0, "cpu") -> OperationSum(2500, 100, 10, 2)))
    plans.offers(offer(3))
    Seq(1L, 2L).foreach(plans.runs(_, BatchPlan.Columnar, columnar, () => sums))
    plans.ranInSpark(operator = 5, batch = 1, BatchPlan.Panes)
    plans.leavesWorkers(operator = 5, "another aggregate")
    equal("after news of another aggregate", plans.offered, Some(offer(3)))
    plans.ranInSpark(operator = 3, batch = 2, BatchPlan.Spark)
    plans.leavesWorkers(operator = 3, "the table is too large")
    equal("the batch before", plans.report(1, ScanTasks(2, 40, 60)).map(_.path), Some(BatchPlan.Columnar))
    val report = plans.report(2, ScanTasks(2, 40, 60)).get
    equal("the batch", (report.path, report.workerMs, report.operations), (BatchPlan.Spark, 0.0, Nil))
    equal("what is offered", plans.offered.flatMap(_.leftToSpark), Some("the table is too large"))
  }

  check("machines_are_counted_by_kind_while_their_executors_are_there", once) { _ =>
    val machines = new Machines
    val plain = MachineKind("cpu x", 8)
    val gpu = GpuKind("gpu y", "13.0", 1, 1024)
    Seq("1", "2", "3").foreach(machines.reported(_, plain))
    machines.hasGpu("2", gpu)
    machines.hasGpu("nobody", gpu)
    equal("both kinds", machines.counted, Map(plain -> 2, plain.copy(gpu = Some(gpu)) -> 1))
    machines.gone("2")
    equal("what is left", machines.counted, Map(plain -> 2))
    holds("this machine has a name and cores")(ThisMachine.kind.cpu.nonEmpty && ThisMachine.kind.cores > 0)
  }

  check("workers_are_planned_for_only_if_all_executors_that_are_there_have_told_that_they_can", once) { _ =>
    val machines = new Machines
    val kind = MachineKind("cpu x", 8)
    def whyNot: String = machines.whyNotInWorkers("3.12", mustKnow = true).getOrElse("")
    holds("none is known")(whyNot.contains("no executor"))
    machines.started("1")
    machines.reported("2", kind)
    machines.reported("2", kind, Some(Right("3.12")))
    holds("the first has told nothing")(whyNot.contains("not known yet whether workers of executor 1"))
    equal("machines that are known", machines.counted, Map(kind -> 1))
    equal("where they are asked for", machines.whyNotInWorkers("3.12", mustKnow = false), None)
    machines.reported("1", kind, Some(Left("python3 cannot import it")))
    holds("it cannot")(whyNot.contains("executor 1 says that python3 cannot import it"))
    holds("where they are asked for, too")(machines.whyNotInWorkers("3.12", mustKnow = false).isDefined)
    machines.reported("1", kind, Some(Right("3.11")))
    holds("it has another version")(whyNot.contains("Python 3.11, and the driver has 3.12"))
    machines.reported("1", kind, Some(Right("3.12")))
    equal("all can", whyNot, "")
    machines.started("3")
    holds("a new one has told nothing")(whyNot.contains("executor 3"))
    machines.gone("3")
    machines.reported("3", kind, Some(Left("it is ending")))
    equal("what comes of one that is gone", whyNot, "")
    machines.tried("driver", Left("it is no executor"))
    equal("what a driver without tasks cannot", whyNot, "")
  }

  check("a_query_that_insists_on_the_gpu_lets_the_workers_of_all_tasks_of_a_machine_be_at_it", once) { _ =>
    equal("one that does not", GpuWorkers.bound("auto", 1, 8), 1L)
    equal("one that does", GpuWorkers.bound("gpu", 1, 8), 8L)
    equal("a higher bound stays", GpuWorkers.bound("gpu", 12, 8), 12L)
    val executors = Seq("one:4000" -> 4, "two:4000" -> 6, "one:4001" -> 4, "[::1]:7" -> 2, "three" -> 1)
    equal("executors of one machine", StreamThread.tasksOfMachine(executors), 8)
    equal("before there are any", StreamThread.tasksOfMachine(Nil), 0)
  }

  check("a_gpu_that_was_told_of_stays_when_an_executor_tells_again", once) { _ =>
    val machines = new Machines
    val kind = MachineKind("cpu x", 8)
    val gpu = GpuKind("gpu y", "13.0", 1, 1024)
    machines.reported("1", kind)
    machines.hasGpu("1", gpu)
    machines.reported("1", kind, Some(Right("3.12")))
    equal("the kind", machines.counted, Map(kind.copy(gpu = Some(gpu)) -> 1))
  }
}
