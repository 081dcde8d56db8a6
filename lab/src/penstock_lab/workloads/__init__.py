"""Workloads, what Penstock is fed when it is shown or measured: generators, an open-loop sender."""

from __future__ import annotations
