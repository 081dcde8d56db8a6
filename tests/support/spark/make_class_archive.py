"""Makes the archive of class_archive.py from a run of the job of three_queries.py.

Run as a script, before the tests. Does nothing if the archive is there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from support.servers.processes import SHORT_RUN, ServerProcess, wait_until
from support.spark.class_archive import DRIVERS, FOLDER, QUIETLY, archive
from support.spark.three_queries.run import ThreeQueries

BATCHES = 2


def make(folder: Path) -> Path:
    """The archive of the classes that a run of three queries has loaded, in `folder`."""
    made = folder / "classes.jsa"
    os.environ[DRIVERS] = f"{SHORT_RUN} -XX:ArchiveClassesAtExit={made} {QUIETLY}"
    server = ServerProcess(folder / "data").start()
    try:
        driver = ThreeQueries(server, folder / "job", BATCHES).finish()
    finally:
        server.stop()
    # Java writes it when it ends, which is after its driver has.
    wait_until("Java has ended", lambda: not driver.has_processes())
    return made


def main() -> None:
    wanted = archive()
    if wanted.exists():
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        made = make(Path(folder))
        if not made.exists():
            print("this Java keeps no archive of classes, so that tests take longer")
            return
        # Under its name only when it is whole: others may be starting.
        half = wanted.with_suffix(".new")
        shutil.copy(made, half)
    half.rename(wanted)
    print(f"Spark's classes are in {wanted}")


if __name__ == "__main__":
    main()
