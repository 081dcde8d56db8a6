"""`penstock calibrate`: what operations cost on this machine, measured and kept for a server."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from penstock.devices.calibration_files import CalibrationFiles
from penstock.devices.components import GPU_REFUSES
from penstock.devices.measure import OperationTiming
from penstock.devices.measured_calibration import SIZES, calibrated
from penstock.devices.pipeline import DeviceRefused
from penstock.devices.this_machine import this_machine
from penstock.errors import BadCall

MIB = 1 << 20


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--largest",
    default=SIZES[-1] // MIB,
    show_default=True,
    type=click.IntRange(1, 4_096),
    help="The largest input that is measured, in MB.",
)
def calibrate(folder: Path, largest: int) -> None:
    """Measure what operations cost on this machine, and write it into FOLDER.

    Each operation of docs/columnar.md is run on one core, and on the GPU if there is one, over
    inputs of 4 KB up to --largest; moving rows to the GPU and back is measured apart. It takes
    minutes, and should be alone on the machine. What a query's own batches measure later corrects
    it. Give the folder `calibrations` in the data folder of a server that is not running, or copy
    the file there; `penstock explain QUERY --calibration FILE` says what this machine would change.

    \b
    Example: penstock calibrate penstock-data/calibrations
    """
    machine = this_machine()
    console = Console(highlight=False)
    with console.status(str(machine)) as status:

        def heard(timing: OperationTiming) -> None:
            status.update(
                f"{timing.kind} on the {timing.device}: {timing.bytes:,} bytes, {timing.ms:,.2f} ms"
            )

        sizes = [size for size in SIZES if size <= largest * MIB]
        try:
            calibration = calibrated(machine, sizes, heard=heard)
        except DeviceRefused as refusal:
            raise BadCall(
                f"the GPU of this machine cannot be measured: {refusal.text}; free it, or hide it "
                "with CUDA_VISIBLE_DEVICES= to measure the CPU alone",
                code="no_gpu",
            ) from refusal
    CalibrationFiles(folder).save(calibration)
    for part, cost in calibration.costs.items():
        click.echo(f"{part:14} {cost.fixed_ms:8.3f} ms and {cost.ms_per_mb:8.3f} ms for each MB")
    if machine.gpu is not None:
        for kind in sorted(GPU_REFUSES):
            click.echo(f"{kind} was measured on the CPU alone, because a GPU does not take it")
    click.echo(f"{folder / machine.key}.json: {machine}")
