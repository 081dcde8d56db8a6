"""The examples run as they are, and their answers are right."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

EXAMPLES = Path(__file__).parents[2] / "examples"
START = datetime(2026, 1, 1, tzinfo=UTC)
RUN_S = 300


def write_orders(folder: Path, files: range, per_file: int = 200) -> None:
    folder.mkdir(exist_ok=True)
    for number in files:
        rows = (
            {
                "customer": (number * per_file + i) % 7,
                "amount": float(i % 13),
                "at": (START + timedelta(seconds=number * 20 + i / 10)).isoformat(),
            }
            for i in range(per_file)
        )
        text = "\n".join(json.dumps(row) for row in rows)
        (folder / f"{number:03}.json").write_text(text, encoding="utf-8")


def run_example(name: str, *args: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *args],
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_a_job_from_files_to_files_goes_on_where_it_ended(tmp_path: Path) -> None:
    given, made, checkpoint = (tmp_path / name for name in ("given", "made", "checkpoint"))
    for files in (range(8), range(8, 16)):
        write_orders(given, files)
        run_example("files_to_files.py", given, made, checkpoint)
    connection = duckdb.connect()
    done = connection.execute(
        f"select epoch(start)::bigint, customer, orders, turnover from '{made}/*.parquet'"
    ).fetchall()
    expected = connection.execute(
        f"""
        select epoch(date_trunc('minute', "at"::timestamptz))::bigint, customer,
               count(*), sum(amount)
        from read_json('{given}/*.json', columns={{customer: 'bigint', amount: 'double',
                       "at": 'varchar'}})
        group by all
        """
    ).fetchall()
    last = max(row[0] for row in done)
    assert sorted(done) == sorted(row for row in expected if row[0] <= last)
    assert len(done) >= 7 * 4
    # Written by the plug-in, for Spark: the offset log names Spark's own provider.
    assert "Penstock" not in (checkpoint / "offsets" / "0").read_text(encoding="utf-8")
