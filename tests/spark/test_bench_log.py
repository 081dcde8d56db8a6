"""The log suite in short. It needs no Spark, but processes and seconds as the others do."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock.testing.nats_servers import nats_program
from penstock_lab.experiment.outlet import Outlet
from penstock_lab.suites.log import suite
from penstock_lab.suites.log.plan import EMBEDDED, JETSTREAM, QUICK


@pytest.mark.parametrize("backends", [(EMBEDDED,), (EMBEDDED, JETSTREAM)], ids=["embedded", "both"])
def test_a_short_run_is_written(backends: tuple[str, ...], tmp_path: Path) -> None:
    if JETSTREAM in backends and nats_program() is None:
        pytest.skip("there is no nats-server here: install Debian's nats-server")
    small = msgspec.structs.replace(
        QUICK,
        backends=backends,
        repeats=1,
        append_s=0.05,
        deliver_s=0.3,
        start_small_gb=0.001,
        start_large_gb=0.002,
        starts=1,
        start_tags=100,
        tag_entries=200,
        tags_many=100,
        tag_reads=1,
        recover_s=20,
        recover_rate=500,
        recoveries=1,
    )
    told: list[str] = []
    file, picture = tmp_path / "l.json", tmp_path / "l.png"
    suite.run(small, tmp_path, told.append, Outlet(Console(file=io.StringIO()), file, picture))
    found = msgspec.json.decode(file.read_bytes())
    assert len(told) == small.steps
    assert found["figures"]["embedded.100B.w1.append_per_s"] > 0
    assert found["figures"]["embedded.deliver_ms_p50"] > 0
    for name in ("tag_read_ratio", "start_ratio", "recovery_ratio"):
        assert found["figures"][f"headline.{name}"] > 0
        assert (f"jetstream.{name}" in found["figures"]) is (JETSTREAM in backends)
    assert picture.stat().st_size > 1_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.json", "l.png"]
