"""Arrow columns to a device and back, all columns of some rows in one transfer each way.

Values go as the bytes that Arrow has; masks and truth values as bits, which the device takes apart.
Of a decimal only the lower word goes. Texts are given their codes here, on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.devices.gpu.backend import Array, Backend
from penstock.devices.gpu.columns import NO_TEXTS, DeviceColumn, DeviceRows, dtype_of
from penstock.devices.operators.casts import of_unscaled
from penstock.devices.operators.rows import Numbers, Rows

BITS, WORD_BITS = 8, 3
WORDS = 2


@dataclass(frozen=True)
class _HostColumn:
    """The parts of a column that travel; bits begin `bits_start` bits into their first byte."""

    type: pa.DataType
    count: int
    values: Numbers
    mask: Numbers | None
    bits_start: int
    dictionary: pa.Array | None = None

    @property
    def arrays(self) -> list[Numbers]:
        return [self.values] if self.mask is None else [self.values, self.mask]


def to_device(rows: Rows, backend: Backend) -> tuple[DeviceRows, int]:
    """The rows on a device, and how many bytes had to be moved."""
    parts = [_host_column(column) for column in rows.columns]
    sent = [array for part in parts for array in part.arrays]
    arrays = iter(backend.upload(sent))
    columns = tuple(_device_column(part, arrays, backend) for part in parts)
    return DeviceRows(backend, columns, rows.count), sum(array.nbytes for array in sent)


def to_device_column(column: pa.Array, backend: Backend) -> DeviceColumn:
    """A single column on a device."""
    part = _host_column(column)
    return _device_column(part, iter(backend.upload(part.arrays)), backend)


def _host_column(column: pa.Array) -> _HostColumn:
    kind, start, count = column.type, column.offset, len(column)
    if pa.types.is_string(kind):
        encoded = column.dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(0)).astype(np.int32, copy=False)
        texts = encoded.dictionary if len(encoded.dictionary) else NO_TEXTS
        mask = _packed(np.asarray(column.is_valid())) if column.null_count else None
        return _HostColumn(kind, count, codes, mask, 0, texts)
    mask_bits, data = column.buffers()
    mask = _bytes_of_bits(mask_bits, start, count) if column.null_count else None
    if pa.types.is_boolean(kind):
        return _HostColumn(kind, count, _bytes_of_bits(data, start, count), mask, start % BITS)
    if pa.types.is_decimal(kind):
        words = _numbers(data, np.dtype(np.int64), WORDS * start, WORDS * count)
        return _HostColumn(kind, count, words[::WORDS].copy(), mask, start % BITS)
    numbers = _numbers(data, dtype_of(kind), start, count)
    return _HostColumn(kind, count, numbers, mask, start % BITS)


def _numbers(data: pa.Buffer | None, dtype: np.dtype[Any], start: int, count: int) -> Numbers:
    if data is None or not count:
        return np.zeros(count, dtype)
    return np.frombuffer(data, dtype, count, start * dtype.itemsize)


def _packed(mask: Numbers) -> Numbers:
    return np.packbits(mask, bitorder="little")


def _bytes_of_bits(bits: pa.Buffer | None, start: int, count: int) -> Numbers:
    """The bytes in which so many bits lie."""
    first, end = start // BITS, -(-(start + count) // BITS)
    if bits is None:
        return np.full(end - first, 0xFF, np.uint8)
    return np.frombuffer(bits, np.uint8, end - first, first)


def _device_column(part: _HostColumn, arrays: Iterator[Array], backend: Backend) -> DeviceColumn:
    values = next(arrays)
    if pa.types.is_boolean(part.type):
        values = _unpacked(values, part.bits_start, part.count, backend)
    valid = None
    if part.mask is not None:
        valid = _unpacked(next(arrays), part.bits_start, part.count, backend)
    return DeviceColumn(part.type, values, valid, part.dictionary)


def _unpacked(bits: Array, start: int, count: int, backend: Backend) -> Array:
    places = backend.xp.arange(start, start + count)
    return ((bits[places >> WORD_BITS] >> (places & (BITS - 1))) & 1).astype(bool)


def fetched(rows: DeviceRows) -> tuple[list[Numbers], int]:
    """The numbers and masks of rows on the host, and how many bytes had to be moved."""
    asked = [
        part
        for column in rows.columns
        for part in (column.values, column.valid)
        if part is not None
    ]
    arrays = rows.backend.download(asked)
    return arrays, sum(array.nbytes for array in arrays)


def to_arrow(rows: DeviceRows, arrays: list[Numbers]) -> Rows:
    """The Arrow columns of rows whose numbers and masks were fetched."""
    parts = iter(arrays)
    columns = tuple(
        _arrow_column(column, next(parts), None if column.valid is None else next(parts))
        for column in rows.columns
    )
    return Rows(columns, rows.count)


def _arrow_column(column: DeviceColumn, values: Numbers, valid: Numbers | None) -> pa.Array:
    kind, count = column.type, len(values)
    if pa.types.is_string(kind):
        nulls = None if valid is None else ~valid
        return column.texts.take(pa.array(values, pa.int32(), mask=nulls))
    if pa.types.is_decimal(kind) and values.ndim == 1:
        return of_unscaled(values, np.ones(count, bool) if valid is None else valid, kind)
    if pa.types.is_boolean(kind):
        values = _packed(values)
    mask = None if valid is None else pa.py_buffer(_packed(valid))
    return pa.Array.from_buffers(kind, count, [mask, pa.py_buffer(np.ascontiguousarray(values))])
