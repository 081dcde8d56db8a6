"""Opening a log in JetStream: reach its servers, then bring the index in the folder up to use."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from penstock.clock import Clock
from penstock.errors import BadCall, Damaged, TryAgain
from penstock.log.address import LogAddress
from penstock.log.backends.jetstream.codec import FIRST_VERSION, VERSION
from penstock.log.backends.jetstream.connection import Connection
from penstock.log.backends.jetstream.state_dump import Baseline, Refill
from penstock.log.backends.jetstream.state_stream import Keeper
from penstock.log.backends.jetstream.stream import StreamState, ensure_stream
from penstock.log.backends.local import READERS_MAX
from penstock.log.store.folder import Folder, check_whole
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.refilling import is_whole
from penstock.log.store.room import map_size
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn
from penstock.settings.server import Settings

_LOG = logging.getLogger("penstock.log")
QUIET_S = 3.0
SAY_AGAIN_S = 10.0


class ReachedLog(NamedTuple):
    """A log that has answered: its stream, and the newest state that is written down of it."""

    stream: StreamState
    keeper: Keeper
    newest: Baseline | None


def reach(connection: Connection, settings: Settings, clock: Clock) -> ReachedLog:
    """Connect and find the log; says every so often that it waits, and gives up at the bound."""
    until = clock.monotonic_s() + settings.log_wait_s_max
    said_at = clock.monotonic_s() + QUIET_S - SAY_AGAIN_S
    while True:
        try:
            if not connection.client.is_connected:
                connection.call(connection.connect())
            connection.check_version()
            return _reached(connection, settings)
        except BadCall:
            raise
        except Exception as error:
            why = str(error) or type(error).__name__
        if clock.monotonic_s() > said_at + SAY_AGAIN_S:
            said_at = clock.monotonic_s()
            _LOG.warning(
                "waiting for the log %s: %s; its servers are %s; start those that are down, so "
                "that more than half run",
                connection.address, why, connection.call(connection.reach()),
            )  # fmt: skip
        if clock.monotonic_s() > until:
            raise TryAgain(
                f"the log {connection.address} gave no answer for {settings.log_wait_s_max} s: "
                f"{why}; its servers are {connection.call(connection.reach())}; start those that "
                "are down, so that more than half run, with JetStream on",
                code="log_unavailable",
            )
        clock.sleep(0.3)


def _reached(connection: Connection, settings: Settings) -> ReachedLog:
    stream = connection.call(ensure_stream(connection, settings))
    keeper = Keeper(connection, stream)
    newest = keeper.newest()
    if newest is not None and newest.lsn > stream.last:
        # Perhaps another server has written it down since the stream was looked at.
        stream = connection.call(ensure_stream(connection, settings))
    return ReachedLog(stream, keeper, newest)


class Index:
    """The store in the folder: `applied` is the last place it holds, once `refill` is done."""

    def __init__(self, env: lmdb.Environment, refill: Refill | None) -> None:
        self.env = env
        self.tables = Tables(env)
        self.refill = refill
        with env.begin() as txn:
            view = StoreView(txn, self.tables)
            self.applied = Lsn(view.next_lsn - 1)
            self.is_whole = is_whole(view)


def open_index(
    folder: Folder, address: LogAddress, reached: ReachedLog, settings: Settings
) -> Index:
    """The index to go on with, in this order:

    1. thrown away if it is of another stream or version, cannot be read, or the machine went down
       with it open, when its unsynced pages may be anything;
    2. refused if it is ahead of the stream, or the newest state is: that has lost what it had
       acknowledged;
    3. replaced by the newest state written down if it is behind that, because messages between
       may have been purged.
    """
    state, keeper, made = reached
    telling = named(address, state, running=True)
    if folder.store.exists() and not _is_usable(folder, telling):
        shutil.rmtree(folder.store)
    folder.store.mkdir(exist_ok=True)
    folder.write_index(telling)
    index = Index(_open_env(folder, settings), None)
    if index.applied > state.last:
        index.env.close()
        raise Damaged(
            f"the stream of the log {address} ends at {state.last}, and the index in {folder.path} "
            f"has seen {index.applied}: JetStream has lost what it had acknowledged; restore it, "
            "or delete the folder to go on with what is left",
            code="damaged",
        )
    if made is not None and made.lsn > state.last:
        index.env.close()
        raise Damaged(
            f"the stream of the log {address} ends at {state.last}, and the state written down in "
            f"{address.name}-base is that of {made.lsn}: they are not of one time; restore both "
            "from backups made while no server of this log was running",
            code="damaged",
        )
    if not index.is_whole or (made is not None and index.applied < made.lsn):
        index.env.close()
        shutil.rmtree(folder.store)
        folder.store.mkdir()
        env = _open_env(folder, settings)
        if made is not None:
            keeper.load(env, Tables(env), made)
            refill = Refill(made.carried, made.lsn) if made.carried else None
            index = Index(env, refill)
        else:
            index = Index(env, None)
    _check_reachable(index, address, state)
    folder.write_format()
    return index


def _check_reachable(index: Index, address: LogAddress, state: StreamState) -> None:
    """Refuse what would be waited for in vain: messages that are gone and in no state."""
    reached = index.applied if index.refill is None else index.refill.until
    if reached < state.last and reached + 1 < state.first:
        index.env.close()
        raise Damaged(
            f"the messages {reached + 1} to {state.first - 1} of the log {address} are gone, and "
            "no state that holds them is written down; restore JetStream from a backup",
            code="damaged",
        )


def _open_env(folder: Folder, settings: Settings) -> lmdb.Environment:
    """Nothing is synced: what a crash of this process leaves is in the system's memory, and after
    one of the machine the index is made anew."""
    return lmdb.open(
        str(folder.store),
        map_size=map_size(settings),
        mode=0o600,
        max_dbs=len(TABLES),
        max_readers=READERS_MAX,
        writemap=False,
        sync=False,
        metasync=False,
    )


def _is_usable(folder: Folder, named: dict[str, Any]) -> bool:
    index = folder.read_index()
    same = all(index.get(key) == named[key] for key in ("name", "created"))
    if index and not same:
        _LOG.warning(
            "the index in %s is of another stream, %s made at %s, and is made anew",
            folder.path, index.get("name"), index.get("created"),
        )  # fmt: skip
    if same and index.get("version", FIRST_VERSION) != VERSION:
        _LOG.warning(
            "the index in %s is of version %s of the log, and this server's is %d; it is made anew",
            folder.path, index.get("version", FIRST_VERSION), VERSION,
        )  # fmt: skip
        return False
    if same and index["running"] and index["boot"] != named["boot"]:
        _LOG.warning("the machine stopped with the index in %s open; it is made anew", folder.path)
        return False
    return same and _is_readable(folder)


def _is_readable(folder: Folder) -> bool:
    data = folder.store / "data.mdb"
    try:
        if data.exists():
            check_whole(data)
    except Damaged as damage:
        _LOG.warning("the index in %s is made anew: %s", folder.path, damage.message)
        return False
    return True


def named(address: LogAddress, state: StreamState, *, running: bool) -> dict[str, Any]:
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "log": str(address),
        "name": address.name,
        "created": state.created,
        "version": VERSION,
        "running": running,
        "boot": boot.read_text("ascii").strip() if boot.exists() else "unknown",
    }
