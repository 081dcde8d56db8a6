"""Room in the store: a reserve that only what frees space may use.

LMDB writes a changed page to a new place, so even a removal needs some. The reserve is, of the map,
the last bytes of the address space; of the disk, a file whose blocks are given back when they are
needed; and in place of either, free pages inside the store's own file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import lmdb

from penstock.errors import TryAgain
from penstock.log import operations as op
from penstock.log.store.layout import TABLES, Tables
from penstock.settings.server import Settings

FREEING = (
    op.AlterStream,
    op.DeleteQuery,
    op.DeleteStream,
    op.ForgetConsumer,
    op.MovePosition,
    op.Reclaim,
    op.ResetQuery,
    op.SweepStream,
    op.TrimQuery,
    op.TrimStream,
    op.TrimTag,
)
"""Operations that free space, or let others free it, and take next to none themselves."""
_OPERATION_BYTES = 1 << 10


def is_freeing(operation: op.Operation) -> bool:
    return isinstance(operation, FREEING)


class Room:
    """Room that the store has left. `release` gives the reserve on disk back."""

    def __init__(
        self, env: lmdb.Environment, tables: Tables, folder: Path, settings: Settings
    ) -> None:
        self._env = env
        self._tables = tables
        self._folder = folder
        self._settings = settings
        self._page = int(env.stat()["psize"])
        self._file = folder / "reserve"
        self._is_held = False
        self._hold()

    def refusals(self, txn: lmdb.Transaction, sizes: Sequence[int | None]) -> list[TryAgain | None]:
        """Refusals of operations with payloads of these sizes, each in its turn; None: there is
        room for it. A size of None is that of an operation that frees space."""
        needs = [None if size is None else self._pages(size) for size in sizes]
        in_file = int(self._env.info()["last_pgno"]) + 1
        left, refusal = self._settings.map_bytes // self._page - in_file, None
        wanted = sum(need for need in needs if need is not None)
        if wanted and (wanted > left or not self._hold()):
            left, refusal = self._left_without_growing(txn, in_file)
        refusals = []
        for need in needs:
            fits = need is None or need <= left
            refusals.append(None if fits else refusal)
            left -= need if fits and need is not None else 0
        return refusals

    def _left_without_growing(self, txn: lmdb.Transaction, in_file: int) -> tuple[int, TryAgain]:
        """The pages that are free within the bounds, and the refusal of who needs more."""
        used = self._used(txn)
        if self._is_held:
            bound = self._settings.map_bytes
            return bound // self._page - used, self.full(
                f"the log has reached map_bytes, {bound}; raise it, or trim it,"
            )
        reserve = self._settings.reserve_bytes
        return in_file - used - reserve // self._page, self.full(
            f"the reserve of {reserve} bytes for trims is used; make room"
        )

    def _pages(self, size: int) -> int:
        """About what an operation takes, with what is said of it in every table."""
        return -(-(size + size // 4 + _OPERATION_BYTES) // self._page) + 1

    def _used(self, txn: lmdb.Transaction) -> int:
        """The pages that hold something."""
        stats = [txn.stat(self._tables[name]) for name in TABLES]
        return sum(
            stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats
        )

    def _hold(self) -> bool:
        """Whether the reserve on disk is there, taken now if it can be."""
        if not self._is_held:
            try:
                handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError:
                return False
            try:
                if self._settings.reserve_bytes:
                    os.posix_fallocate(handle, 0, self._settings.reserve_bytes)
                self._is_held = True
            except OSError:
                self._file.unlink(missing_ok=True)
            finally:
                os.close(handle)
        return self._is_held

    def release(self) -> None:
        """Give the reserve on disk to what frees space."""
        self._file.unlink(missing_ok=True)
        self._is_held = False

    def full(self, fact: str) -> TryAgain:
        space = os.statvfs(self._folder)
        return TryAgain(
            f"the log in {self._folder} cannot grow, with {space.f_bavail * space.f_frsize} bytes "
            f"free on its disk: {fact} and try again; nothing of this call was kept",
            code="storage_full",
            status=507,
        )


def map_size(settings: Settings) -> int:
    """The address space of the store's file, with the reserve."""
    return settings.map_bytes + settings.reserve_bytes
