"""Calibrations in files of one folder, a file for each kind of machine: all I/O of planning."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from penstock.devices.calibration import (
    Calibration,
    Machine,
    check_machine,
    decode_calibration,
)
from penstock.errors import BadCall

_LOG = logging.getLogger("penstock.devices")
FILE_BYTES_MAX = 1 << 20


class CalibrationFiles:
    """The calibrations of one server. A file that cannot be read is not used; one that cannot be
    written is lost, and learned again: neither stops a query."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, machine: Machine) -> Calibration | None:
        """The calibration of a kind of machine; None if there is none. Refused if the file is
        damaged or of another machine."""
        file = self.folder / f"{machine.key}.json"
        if not file.exists():
            return None
        return check_machine(read_calibration(file), machine, str(file))

    def save(self, calibration: Calibration) -> None:
        """Write a calibration in place of the one before it, whole or not at all."""
        file = self.folder / f"{calibration.machine.key}.json"
        draft = file.with_suffix(".draft")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=1))
            draft.replace(file)
        except OSError as error:
            _LOG.warning(
                "the calibration %s cannot be written (%s): what was learned of this machine is "
                "lost with the server's end; make room, or make the folder writable",
                file,
                error,
            )


def read_calibration(file: Path) -> Calibration:
    """A calibration from a file, whatever machine it is of."""
    try:
        with file.open("rb") as opened:
            text = opened.read(FILE_BYTES_MAX)
    except OSError as error:
        raise BadCall(
            f"the calibration {file} cannot be read: {error.strerror or error}; give another file",
            code="bad_calibration",
        ) from error
    return decode_calibration(text, str(file))
