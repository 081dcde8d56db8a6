"""Texts on a device: codes of dictionaries, which are put together, ordered and asked on the host.

What is done here takes as long as the dictionary is large, not as the column is long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.devices.gpu.arrow import to_device_column
from penstock.devices.gpu.backend import Backend
from penstock.devices.gpu.columns import DeviceColumn, shared_validity
from penstock.devices.operators.evaluate import column as host_column
from penstock.devices.operators.expressions import Call, Column
from penstock.devices.operators.rows import Rows


def shared(columns: Sequence[DeviceColumn], backend: Backend) -> list[DeviceColumn]:
    """The columns with one dictionary, so that equal texts have equal codes. Columns that are no
    texts stay as they are."""
    if not all(pa.types.is_string(column.type) for column in columns):
        return list(columns)
    dictionaries = [column.texts for column in columns]
    if all(each is dictionaries[0] for each in dictionaries):
        return list(columns)
    encoded = pa.concat_arrays(dictionaries).dictionary_encode()
    codes = np.asarray(encoded.indices).astype(np.int32, copy=False)
    ends = np.cumsum([len(each) for each in dictionaries])
    new_codes = backend.upload(np.split(codes, ends[:-1]))
    return [
        replace(column, values=codes_of[column.values], dictionary=encoded.dictionary)
        for column, codes_of in zip(columns, new_codes, strict=True)
    ]


def ordered(column: DeviceColumn, backend: Backend) -> DeviceColumn:
    """The column with codes in the order of its texts, which is that of their bytes."""
    if not pa.types.is_string(column.type):
        return column
    order = np.asarray(pc.sort_indices(column.texts))
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    (new_codes,) = backend.upload([ranks])
    texts = column.texts.take(pa.array(order))
    return replace(column, values=new_codes[column.values], dictionary=texts)


def by_dictionary(call: Call, column: DeviceColumn, backend: Backend) -> DeviceColumn:
    """A function of a text and constants, computed on the host for each text there is."""
    of_text = Call(call.name, call.type, (Column(0), *call.arguments[1:]), call.is_ansi)
    answers = host_column(of_text, Rows((column.texts,), len(column.texts)))
    answer = to_device_column(answers, backend).taken(column.values)
    return replace(answer, valid=shared_validity([answer, column]))
