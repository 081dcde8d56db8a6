"""Devices, a stage: where each operation of a batch runs, on CPU or GPU, and on which path.

`plan` decides for one batch, from its bytes by task, the `costs` that are known and the policy of
its query (`policies`); `tuning` holds the inflection point of the paper and when a plan is probed.
`calibration` says what a machine costs before a query has measured anything. `query_planning`
keeps what one query has learned, `planner` that of all queries. All pure, but for
`calibration_files`, which alone reads and writes for planning. A worker looks at its machine in
`this_machine`, and finds its GPU in `gpu.worker_gpu` and its slot there in `gpu.slots`.

`pipeline` is a part of a query's plan as steps over Arrow columns, `operators` are the steps, and
`worker` runs them in a Python worker of Spark.
"""
