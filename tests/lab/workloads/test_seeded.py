"""Randomness by number: even, independent between columns, and never out of bounds."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadCall
from penstock.model.schema import schema_of
from penstock_lab.workloads import ads, cluster_trace, linear_road, nexmark
from penstock_lab.workloads.seeded import (
    Draw,
    cumulative_weights,
    fixed_width_text,
    power_of_ten,
    zipf_weights,
)

KNOWN = [12_081_372_379_024_818_429, 11_393_792_076_497_754_948, 17_502_266_611_048_532_717]
MANY = np.arange(100_000, dtype=np.int64)


def test_bits_of_a_known_seed_never_change() -> None:
    assert Draw(7, "a").bits(MANY[:3]).tolist() == KNOWN


def test_every_bit_is_even_and_independent_of_its_neighbour_s() -> None:
    bits = Draw(7, "a").bits(MANY)
    for place in range(64):
        ones = (bits >> np.uint64(place)) & np.uint64(1)
        assert abs(ones.mean() - 0.5) < 0.01
        assert abs(np.mean(ones[1:] == ones[:-1]) - 0.5) < 0.01


def test_units_are_spread_evenly() -> None:
    counts = np.histogram(Draw(1, "a").unit(MANY), bins=100, range=(0, 1))[0]
    # Chi-square with 99 degrees of freedom: above 149 once in a thousand seeds.
    assert np.sum((counts - 1_000.0) ** 2 / 1_000) < 149


@pytest.mark.parametrize(("seed", "column"), [(8, "a"), (7, "b")])
def test_another_seed_or_column_draws_independently(seed: int, column: str) -> None:
    mine, other = Draw(7, "a").unit(MANY), Draw(seed, column).unit(MANY)
    assert abs(np.corrcoef(mine, other)[0, 1]) < 0.02


@settings(deadline=None)
@given(st.integers(0, 2**64), st.integers(0, 2**40), st.integers(1, 2**53))
def test_whole_numbers_stay_below_their_bound(seed: int, n: int, bound: int) -> None:
    [drawn] = Draw(seed, "a").below(np.array([n]), bound).tolist()
    assert 0 <= drawn < bound


def test_each_number_may_have_a_bound_of_its_own() -> None:
    bounds = MANY % 7 + 1
    drawn = Draw(7, "a").below(MANY, bounds)
    assert np.all(drawn < bounds)
    assert drawn.max() == 6


def test_weights_are_kept() -> None:
    drawn = Draw(7, "a").weighted(MANY, cumulative_weights([1, 0, 3, 4, 0]))
    shares = np.bincount(drawn, minlength=5) / len(MANY)
    assert np.all(np.abs(shares - np.array([0.125, 0, 0.375, 0.5, 0])) < 0.005)


def test_zipf_of_zero_is_uniform() -> None:
    assert zipf_weights(3, 0).tolist() == [1, 1, 1]
    assert zipf_weights(4, 1).tolist() == [1, 1 / 2, 1 / 3, 1 / 4]


def test_powers_of_ten_are_right_to_fourteen_digits() -> None:
    units = np.array([0.0, 1e-9, 1 / 6, 0.25, 0.5, 1 - 2.0**-53])
    with localcontext(prec=30):
        exact = [float(Decimal(10) ** (6 * Decimal(unit))) for unit in units.tolist()]
    assert np.allclose(power_of_ten(units, 6), exact, rtol=1e-14, atol=0)


def test_texts_of_one_width_are_the_rows_of_a_matrix() -> None:
    matrix = np.array([list(b"abc"), list(b"xyz")], np.uint8)
    assert fixed_width_text(matrix).to_pylist() == ["abc", "xyz"]
    assert fixed_width_text(matrix[:0]).to_pylist() == []


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(BadCall, match="give one from 0 up"):
        Draw(-1, "a")


@pytest.mark.parametrize(
    "schema",
    [
        nexmark.PERSONS,
        nexmark.AUCTIONS,
        nexmark.BIDS,
        nexmark.SIDE_INPUT,
        linear_road.POSITION_REPORTS,
        cluster_trace.TASK_EVENTS,
        ads.AD_EVENTS,
        ads.CAMPAIGNS,
    ],
)
def test_every_workload_has_a_schema_that_a_stream_can_have(schema: pa.Schema) -> None:
    assert schema_of(schema).equals(schema)
