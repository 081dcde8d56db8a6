"""The log suite in short. It needs no Spark, but processes and seconds as the others do."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock.testing.nats_servers import nats_program
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.measure.log_sizes import EMBEDDED, JETSTREAM
from penstock_lab.percentiles import median
from penstock_lab.suites import log
from penstock_lab.suites.log.cells import QUICK
from support.skip_reasons import NO_NATS


@pytest.mark.parametrize("backends", [(EMBEDDED,), (EMBEDDED, JETSTREAM)], ids=["embedded", "both"])
def test_a_short_run_is_written(backends: tuple[str, ...], tmp_path: Path) -> None:
    if JETSTREAM in backends and nats_program() is None:
        pytest.skip(NO_NATS)
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
    steps_told: list[str] = []
    file, picture = tmp_path / "l.json", tmp_path / "l.png"
    outlet = Outlet(Console(file=io.StringIO()), file, picture)
    assert run(log.SUITE, small, tmp_path, steps_told.append, outlet)
    written = msgspec.json.decode(file.read_bytes())
    figures = written["figures"]
    runs = {(record["backend"], record["measured"]): record for record in written["runs"]}
    assert len(steps_told) == small.steps == len(runs) == len(written["runs"])
    for backend in backends:
        prefix = "" if backend == EMBEDDED else f"{backend}."
        headline = "headline." if backend == EMBEDDED else prefix
        appends = runs[backend, "appends"]["100B.w1"]
        # A closed loop of one writer: no more appends than fit into the time.
        assert 0 < appends["append_ms_p50"] <= appends["append_ms_p99"]
        assert appends["append_per_s"] == pytest.approx(appends["appends"] / small.append_s)
        for key in ("append_per_s", "append_ms_p50", "append_ms_p99"):
            assert figures[f"{backend}.100B.w1.{key}"] == pytest.approx(appends[key], abs=1e-3)
        delivered = runs[backend, "deliver"]
        assert delivered["delivered"] == small.deliver_s * small.deliver_per_s
        assert figures[f"{backend}.deliver_ms_p50"] == pytest.approx(
            delivered["deliver_ms_p50"], abs=1e-3
        )
        for kind, name, above, below in (
            ("tags", "tag_read_ratio", "many_mb_per_s", "few_mb_per_s"),
            ("starts", "start_ratio", "large_cold_ms", "small_cold_ms"),
            ("recovery", "recovery_ratio", "without_ms", "with_ms"),
            ("recovery", "recovery_log_ratio", "without_log_ms", "with_log_ms"),
        ):
            record = runs[backend, kind]
            pairs = zip(record[above], record[below], strict=True)
            ratio = median([high / low for high, low in pairs])
            named = f"{prefix if name == 'recovery_log_ratio' else headline}{name}"
            assert figures[named] == pytest.approx(ratio, abs=1e-3)
        recovery = runs[backend, "recovery"]
        # With checkpoints a task replays what came after the last one, without them everything.
        assert 0 < recovery["with_replayed"][0] < recovery["without_replayed"][0]
    assert (JETSTREAM in backends) is any(name.startswith("jetstream.") for name in figures)
    assert picture.stat().st_size > 1_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.json", "l.png"]
