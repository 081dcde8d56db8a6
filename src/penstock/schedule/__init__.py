"""Scheduling, a stage: whose tasks run first, as pure decisions.

`order` is the specification of the pool that the plug-in puts into Spark's scheduler; its Scala
twin, `penstock.schedule.TaskOrder`, answers the same vectors, `tests/vectors/schedule.json`.
"""
