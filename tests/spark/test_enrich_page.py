"""docs/enrich.md is run here, word for word but for the address of Redis, in the shared session."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from support.servers.redis_server import RedisServer
from support.sources import ROOT

ADDRESS = "redis://127.0.0.1:6379/0"


def blocks(redis: str) -> list[str]:
    text = (ROOT / "docs" / "enrich.md").read_text(encoding="utf-8")
    return [
        block.replace(ADDRESS, redis)
        for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]


def test_the_page_runs(
    spark: SparkSession,
    redis_server: RedisServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(penstock, "session", lambda _: spark, raising=False)
    monkeypatch.setattr(spark, "stop", lambda: None)  # other tests need it still
    names: dict[str, Any] = {}
    example, ahead, other_store = blocks(redis_server.url)
    # A relative location is the JVM's, which was started elsewhere.
    exec(example.replace('"checkpoint"', repr(str(tmp_path / "checkpoint"))), names)
    said = capsys.readouterr().out
    for ad, campaign in ((1, "'spring'"), (2, "'summer'"), (7, "None")):
        assert f"{{'ad': {ad}, 'campaign': {campaign}}}" in said
    assert "3 rows, 3 keys: " in said
    exec(ahead, names)
    exec(other_store, names)
    with sqlite3.connect("countries.db") as database:
        database.execute("create table countries (code text, name text, population bigint)")
        database.execute("insert into countries values ('fr', 'France', 68)")
    database.close()
    connection = names["Countries"]().connect(1.0)
    assert connection.get_many(["xx", "fr"]) == [None, ("France", 68)]
    connection.close()
