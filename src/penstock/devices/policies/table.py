"""Table II of LMStream: base costs of operations, and the devices they prefer near the inflection
point. What it calls a scan of a CSV file is our parse; our top-k, which it lacks, sorts."""

from __future__ import annotations

from penstock.model.device_plans import Device, OperationKind

BASE_COST: dict[OperationKind, float] = {
    "aggregate": 1.0,
    "filter": 1.0,
    "project": 0.9,
    "join": 0.9,
    "expand": 0.9,
    "parse": 0.8,
    "sort": 0.8,
    "topk": 0.8,
}
PREFERENCE: dict[OperationKind, Device | None] = {
    "aggregate": "cpu",
    "filter": "cpu",
    "project": None,
    "join": None,
    "expand": None,
    "parse": "gpu",
    "sort": "gpu",
    "topk": "gpu",
}
