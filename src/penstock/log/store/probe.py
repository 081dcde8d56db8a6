"""Reads every page in use of a store and exits with 0, or dies of the page that is missing.

Run as a process of its own, because reading a mapped page beyond the end of a file cannot be
caught: `python -m penstock.log.store.probe FOLDER`.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import lmdb
import xxhash

from penstock.log.store.layout import TABLES


def read_all(folder: Path, map_bytes: int) -> int:
    """Touch every byte of every table; returns how many there are."""
    seen = 0
    env = lmdb.open(str(folder), readonly=True, lock=False, max_dbs=len(TABLES), map_size=map_bytes)
    # A store of an older format lacks tables, which are made when it is opened to be used.
    tables = []
    for name in TABLES:
        with contextlib.suppress(lmdb.NotFoundError):
            tables.append(env.open_db(name.encode("ascii"), create=False))
    with env.begin(buffers=True) as txn:
        for table in tables:
            with txn.cursor(db=table) as cursor:
                for key, value in cursor:
                    xxhash.xxh3_64_intdigest(value)
                    seen += len(key) + len(value)
    env.close()
    return seen


if __name__ == "__main__":
    read_all(Path(sys.argv[1]), 1 << 40)
