"""An accumulator of look-up counts: workers add at the end of each task, the driver reads."""

from __future__ import annotations

from pyspark import SparkContext, TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from penstock.lookup.counts import LookupCounts
from penstock.lookup.worker import TaskPlace

# Spark's own names for the query and the batch of a job, which reach its tasks.
QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"


class CountsParam(AccumulatorParam[LookupCounts]):
    """Counts add up; those of no task are 0."""

    def zero(self, value: LookupCounts) -> LookupCounts:
        return LookupCounts()

    def addInPlace(  # noqa: N802, Spark's own word
        self, value1: LookupCounts, value2: LookupCounts
    ) -> LookupCounts:
        return value1.add(value2)


def new_accumulator(context: SparkContext) -> Accumulator[LookupCounts]:
    return context.accumulator(LookupCounts(), CountsParam())


def task_place() -> TaskPlace:
    """The query and the batch of the task that this process runs now."""
    context = TaskContext.get()
    if context is None:
        return TaskPlace()
    batch = context.getLocalProperty(BATCH_PROPERTY)
    return TaskPlace(
        context.getLocalProperty(QUERY_PROPERTY), None if batch is None else int(batch)
    )
