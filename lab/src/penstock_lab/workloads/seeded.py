"""Randomness that is a function of the seed, the column and the event's number, and nothing else.

A generator built on it has no state to carry along, so any range of its events can be made
anywhere, in any order and any number of times, and is the same. Only exact arithmetic is used where
a rounding could show, so that two machines make the same rows too.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal, localcontext
from functools import cache
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import BadCall

Bits: TypeAlias = npt.NDArray[np.uint64]
Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]

STAMP = pa.timestamp("us", "UTC")
BASE_TIME_MS = 1_436_918_400_000
"""2015-07-15T00:00:00Z: event time of event 0 unless a generator is told otherwise."""

EVENTS_MAX = 4_194_304
"""Events in one call; a longer range is asked for in pieces, which gives the same rows."""
NUMBER_MAX = 2**50
"""Highest event number, so that times and keys made from it stay within 64 bits."""
TEXT_BYTES_MAX = 2**31 - 1
"""Bytes of one text column in one call, the reach of Arrow's 32-bit offsets."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Generator(Protocol):
    """One stream of typed rows, numbered from 0."""

    @property
    def schema(self) -> pa.Schema: ...

    def events(self, first: int, count: int) -> pa.RecordBatch:
        """Rows `first` to `first + count - 1`, the same ones in whatever pieces they are asked."""
        ...


class Draw:
    """One random column: 64 bits for every number, by SplitMix64 entered where the number says.

    The column's name is part of the key, so two columns of one event are independent; use a name
    once per thing drawn.
    """

    def __init__(self, seed: int, column: str) -> None:
        require(seed >= 0, f"the seed {seed} is negative; give one from 0 up")
        name = hashlib.blake2b(f"{seed}/{column}".encode(), digest_size=8).digest()
        self._key = np.uint64(int.from_bytes(name, "little"))

    def bits(self, n: Ints) -> Bits:
        """64 random bits each."""
        state = n.astype(np.uint64) * _GOLDEN
        state += self._key
        # The finaliser of SplitMix64, in place: these arrays are what a generator spends time on.
        shifted = state >> np.uint64(30)
        state ^= shifted
        state *= np.uint64(0xBF58476D1CE4E5B9)
        np.right_shift(state, np.uint64(27), out=shifted)
        state ^= shifted
        state *= np.uint64(0x94D049BB133111EB)
        np.right_shift(state, np.uint64(31), out=shifted)
        state ^= shifted
        return state

    def unit(self, n: Ints) -> Floats:
        """Uniform in [0, 1), 53 bits."""
        top = self.bits(n)
        top >>= np.uint64(11)
        floats: Floats = top.astype(np.float64)
        floats *= 2.0**-53
        return floats

    def below(self, n: Ints, bound: int | Ints) -> Ints:
        """Uniform whole numbers in [0, bound), one bound for all or one each, up to 2**53."""
        drawn = self.unit(n)
        drawn *= bound
        whole: Ints = drawn.astype(np.int64)
        return whole

    def chance(self, n: Ints, share: float) -> Flags:
        """True with probability `share`."""
        flags: Flags = self.unit(n) < share
        return flags

    def weighted(self, n: Ints, cumulative: Floats) -> Ints:
        """Index drawn by weight; `cumulative` is made by `cumulative_weights`."""
        places: Ints = np.searchsorted(cumulative, self.unit(n), side="right")
        return places


def cumulative_weights(weights: npt.ArrayLike) -> Floats:
    """The running share of each weight, ending at 1 exactly so that every draw finds an index."""
    running: Floats = np.cumsum(np.asarray(weights, np.float64))
    running /= running[-1]
    running[-1] = 1.0
    return running


def zipf_weights(things: int, exponent: float) -> Floats:
    """Weight of rank r is 1 / (r + 1) ** exponent; exponent 0 makes all alike."""
    weights: Floats = np.arange(1, things + 1, dtype=np.float64) ** -exponent
    return weights


def numbers(first: int, count: int) -> Ints:
    """The event numbers of a range; `bad_request` for one that no generator makes at once."""
    require(
        0 <= first <= NUMBER_MAX and 0 <= count <= EVENTS_MAX,
        f"events {first} to {first} + {count} cannot be made at once; start between 0 and "
        f"{NUMBER_MAX} and ask for at most {EVENTS_MAX} events",
    )
    return np.arange(first, first + count, dtype=np.int64)


def require(holds: bool, otherwise: str) -> None:
    """Refuse options or a range with the sentence `otherwise`."""
    if not holds:
        raise BadCall(otherwise, code="bad_request")


def stamps(at_us: Ints) -> pa.Array:
    """A timestamp column from microseconds since the epoch."""
    return pa.array(at_us).cast(STAMP)


def fixed_width_text(characters: Bytes) -> pa.Array:
    """A text column whose rows are the rows of a matrix of ASCII codes."""
    rows, width = characters.shape
    require(
        rows * width <= TEXT_BYTES_MAX,
        f"{rows} texts of {width} bytes do not fit one batch; ask for fewer events at once",
    )
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    data = np.ascontiguousarray(characters)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(data))


_POWER_STEPS = 1_024


@cache
def _powers(decades: int) -> Floats:
    with localcontext(prec=40):
        step = Decimal(decades) / _POWER_STEPS
        return np.array([float(Decimal(10) ** (step * i)) for i in range(_POWER_STEPS)])


def power_of_ten(unit: Floats, decades: int) -> Floats:
    """10 ** (decades * unit) for `unit` in [0, 1), with relative error below 1e-14.

    By a table and a polynomial, because the power of a mathematics library may differ in its last
    bit from machine to machine, and a price is rounded from it.
    """
    scaled = unit * _POWER_STEPS
    whole = scaled.astype(np.int64)
    x = (scaled - whole) * (decades * 2.302585092994046 / _POWER_STEPS)
    series = np.full_like(x, 1.0 / 720.0)
    for coefficient in (1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0):
        series *= x
        series += coefficient
    result: Floats = _powers(decades)[whole] * series
    return result
