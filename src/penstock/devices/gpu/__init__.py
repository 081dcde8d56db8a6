"""Operations on a GPU, by CuPy and kernels of our own, with the semantics of those on the CPU.

`execution` runs a pipeline: `arrow` moves columns there and back, `steps` runs its steps without
leaving the device, and `refusals` says before which of them stay on the CPU. `evaluate` with
`arithmetic`, `casts`, `comparison`, `fractions` and `texts` computes expressions, `grouping` finds
equal keys for `aggregate` and `join`, `order` sorts. All of that knows the device as a `backend`,
which `cuda` is with its `kernels`; `worker_gpu` finds it, `slots` bounds who may be there, and
`losses` tells why it cannot be had.
"""

from __future__ import annotations

from penstock.devices.gpu.execution import execute
from penstock.devices.gpu.refusals import refusal, refusals

__all__ = ["execute", "refusal", "refusals"]
