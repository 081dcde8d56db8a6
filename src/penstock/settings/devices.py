"""Settings of paths and devices: `spark.penstock.devices` and below; the plug-in reads them."""

from __future__ import annotations

from penstock.settings.setting import Setting

KEY = "spark.penstock.devices"

DEVICES = Setting(
    KEY,
    "what runs an aggregate over windows below its shuffle. `panes`: Spark, by panes. "
    "`cpu`: a Python worker, which gets the columns of a stream of the log as they are and "
    "gives back partial results per pane. `gpu`: the same on a GPU; a query fails where there is "
    "none, or where a part of it would be left to Spark. `spark`: Spark, as it plans it. `auto`: "
    "whichever the server plans for each batch of a query with a deadline or a policy "
    "([docs/devices.md](devices.md)), `panes` for others. What a worker does not take is left to "
    "panes. Where windows do not overlap, `panes` is as Spark plans it. State and checkpoint are "
    "the same, so it may change at any restart ([docs/columnar.md](columnar.md))",
    None, "auto", choices=("auto", "spark", "panes", "cpu", "gpu"),
)  # fmt: skip
DEVICES_POLICY = Setting(
    f"{KEY}.policy",
    "how paths and devices are planned where `devices` is `auto`. `ours`: by what each is learned "
    "to cost. The others are for comparison, and all in workers: `ours-columnar` as `ours` there, "
    "`lmstream` by the size of a partition, `static` by a table, `all-cpu` and `all-gpu` on one "
    "device ([docs/devices.md](devices.md))",
    None, "ours",
    choices=("ours", "ours-columnar", "lmstream", "static", "all-cpu", "all-gpu"),
)  # fmt: skip
DEVICES_GPU_WORKERS = Setting(
    f"{KEY}.gpuWorkers",
    "Python workers that may be at one GPU at once; tasks of others run on the CPU. Where "
    "`devices` is `gpu` it is raised to as many tasks as run at once on one machine",
    "workers", 1, 1, 1024,
)  # fmt: skip
DEVICES_EXPAND = Setting(
    f"{KEY}.expand",
    "for measurements alone: workers make a row for every window, as Spark does, and aggregate "
    "these instead of panes ([docs/columnar.md](columnar.md#a-row-for-every-window)). Slower, with "
    "the same state and answers",
    None, False,
)  # fmt: skip

DEVICE_SETTINGS = (DEVICES, DEVICES_POLICY, DEVICES_GPU_WORKERS, DEVICES_EXPAND)
