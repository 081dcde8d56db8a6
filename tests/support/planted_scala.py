"""A jar of the plug-in with bugs planted in it, of which a process has the one it is told to have.

The sources are the real ones with a few lines changed; nothing of this is in the plug-in itself.
"""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from support.sources import ROOT

VARIABLE = "PENSTOCK_PLANTED"
MARKER_TOO_EARLY = "marker_before_the_last_ack"
SUPERSEDED_COUNTED = "ack_of_a_superseded_write_counted"
COMMIT_TOO_EARLY = "commit_log_before_marker"
CUT_ANEW = "offsets_cut_anew"
STALE_TRUSTED = "stale_local_file_trusted"
VOID_INSTALLED = "voided_fetch_installed"
KEPT_AFTER_ABORT = "cache_kept_after_abort"
NO_ROOM_FORGOTTEN = "fetch_survives_a_write_without_room"
WRITTEN_FORGOTTEN = "fetch_survives_an_entry_that_is_written_back"
READ_AFTER_SHUT = "fetch_begins_after_shut"
SHUT_TOO_EARLY = "shut_does_not_wait"


def _has(bug: str) -> str:
    return f'sys.env.get("{VARIABLE}").contains("{bug}")'


@dataclass(frozen=True)
class Change:
    """In a source file, what is there instead of some text that is there once."""

    file: str
    old: str
    new: str


def _local_file(state_file: str) -> str:
    """One name in every run, and no folder of the process's own."""
    return f"""new java.io.File(
            new CommitSettings(conf).localFolder.get, {state_file}.relative.replace("/", "-"))"""


CHANGES = (
    Change(
        "commit/driver/Release.scala",
        "required.forall(batch.pieces.durableWrite(_, lost).isDefined)",
        f"{_has(MARKER_TOO_EARLY)} || "
        "required.forall(batch.pieces.durableWrite(_, lost).isDefined)",
    ),
    Change(
        "commit/driver/Release.scala",
        "math.max(write.durable, generation)",
        f"math.max(write.durable, if ({_has(SUPERSEDED_COUNTED)}) write.announced else generation)",
    ),
    Change(
        "commit/driver/ReleaseQueue.scala",
        'Failpoint.reach("before_marker", query, batch)',
        f"if ({_has(COMMIT_TOO_EARLY)}) store.putCommit(batch, "
        'held.get(s"commits/$batch"))\n'
        '        Failpoint.reach("before_marker", query, batch)',
    ),
    Change(
        "checkpoint/Recovery.scala",
        "    val mode = ModeOf.run(",
        f"    if ({_has(CUT_ANEW)} && offsets > committed) "
        'files.delete(new Path(root, s"offsets/$offsets"))\n'
        "    val mode = ModeOf.run(",
    ),
    Change(
        "commit/executor/HeldState.scala",
        "    val local = new File(resources.localFolder.of(settings), UUID.randomUUID().toString)",
        f"    val local = if ({_has(STALE_TRUSTED)}) {_local_file('stateFile')} else "
        "new File(resources.localFolder.of(settings), UUID.randomUUID().toString)",
    ),
    Change(
        "prefetch/StoreHints.scala",
        "else if (!fetch.isVoid) install(",
        f"else if ({_has(VOID_INSTALLED)} || !fetch.isVoid) install(",
    ),
    Change(
        "prefetch/StoreCache.scala",
        "    cache.forgetIf(all)(_ => true)\n    cache.synchronized",
        f"    cache.forgetIf(all)(_ => !{_has(KEPT_AFTER_ABORT)})\n    cache.synchronized",
    ),
    Change(
        "prefetch/WriteBack.scala",
        "finally cache.synchronized(store.outdate(key))",
        f"finally if (!{_has(NO_ROOM_FORGOTTEN)}) cache.synchronized(store.outdate(key))",
    ),
    Change(
        "prefetch/WriteBack.scala",
        "finally cache.synchronized(store.voidFetch(entry))",
        f"finally if (!{_has(WRITTEN_FORGOTTEN)}) cache.synchronized(store.voidFetch(entry))",
    ),
    Change(
        "prefetch/NativeReads.scala",
        "val isLetIn = isOpen",
        f"val isLetIn = isOpen || {_has(READ_AFTER_SHUT)}",
    ),
    Change(
        "prefetch/NativeReads.scala",
        "while (inside > 0)",
        f"while (inside > 0 && !{_has(SHUT_TOO_EARLY)})",
    ),
    Change(
        "checkpoint/PenstockFileManager.scala",
        "          resources.heldState.localCopy(run, stateFile) match {",
        f"          Option.when({_has(STALE_TRUSTED)})({_local_file('stateFile')}).filter(_.exists)"
        ".orElse(resources.heldState.localCopy(run, stateFile)) match {",
    ),
)


def planted_sources(folder: Path) -> list[Path]:
    """The changed files, in `folder`; fails if a change finds no place, or two."""
    for change in CHANGES:
        target = folder / change.file
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "jvm" / "src" / "penstock" / change.file, target)
        text = target.read_text()
        assert text.count(change.old) == 1, f"{change.old!r} is not once in {change.file}"
        target.write_text(text.replace(change.old, change.new))
    return sorted(folder.rglob("*.scala"))


def build_planted_jar(folder: Path) -> Path:
    """The plug-in's own jar with the changed files compiled into it."""
    spec = importlib.util.spec_from_file_location("penstock_jar", ROOT / "jvm" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    own = build.build()[0]
    classes = folder / "classes"
    classes.mkdir(parents=True)
    build.compile_scala(planted_sources(folder / "src"), classes, own)
    changed = {path.relative_to(classes).as_posix() for path in classes.rglob("*.class")}
    jar = folder / own.name
    with zipfile.ZipFile(own) as old, zipfile.ZipFile(jar, "w") as new:
        for name in old.namelist():
            if name not in changed:
                new.writestr(name, old.read(name))
        for name in changed:
            new.write(classes / name, name)
    return Path(jar)
