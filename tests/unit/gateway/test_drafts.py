"""Entries made of request bodies: rows cut to size, files divided."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.errors import BadCall
from penstock.gateway.drafts import cut_rows, file_drafts
from penstock.model.ids import FilePath, Substream

PATHS = [FilePath("offsets/1"), FilePath("state/0/0/2.changelog")]


def text_rows(*values: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"v": list(values)})


def test_rows_are_halved_until_each_entry_is_small_enough_and_keep_their_order() -> None:
    rows = text_rows(*(f"{n:04}" * 100 for n in range(50)))
    drafts = cut_rows(Substream(1), rows, 4_000)
    assert len(drafts) > 5
    assert all(len(draft.payload) <= 4_000 and draft.substream == 1 for draft in drafts)
    parts = [pa.ipc.read_record_batch(pa.py_buffer(d.payload), rows.schema) for d in drafts]
    assert [draft.rows for draft in drafts] == [part.num_rows for part in parts]
    assert pa.Table.from_batches(parts).combine_chunks().to_batches() == [rows]


def test_one_row_that_is_too_large_is_refused_with_its_size() -> None:
    with pytest.raises(BadCall, match="at most 1000") as refused:
        cut_rows(Substream(0), text_rows("a", "x" * 5_000), 1_000)
    assert (refused.value.code, refused.value.http_status) == ("entry_too_large", 413)


def test_a_body_is_divided_into_its_files() -> None:
    drafts = file_drafts(b"oneother", PATHS, [3, 5], 100)
    assert [(draft.path, draft.payload) for draft in drafts] == [
        (PATHS[0], b"one"),
        (PATHS[1], b"other"),
    ]


@pytest.mark.parametrize(("sizes", "code"), [([3, 4], "bad_request"), ([1, 7], "entry_too_large")])
def test_sizes_that_do_not_add_up_and_files_that_are_too_large_are_refused(
    sizes: list[int], code: str
) -> None:
    with pytest.raises(BadCall) as refused:
        file_drafts(b"oneother", PATHS, sizes, 6)
    assert refused.value.code == code
