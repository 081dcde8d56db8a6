"""Folders in memory, for tests whose disk would only be waited for.

What such a test asks survives the death of a process there as well as on a disk; what would be lost
with the machine no test can see.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM_BYTES = 2 << 30


@contextmanager
def memory_folder(otherwise: Path) -> Iterator[Path]:
    """A new folder in memory, removed at the end; in `otherwise` where there is no room for it."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM_BYTES
    folder = Path(tempfile.mkdtemp(prefix="penstock-", dir=MEMORY if has_room else otherwise))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
