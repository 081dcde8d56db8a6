"""Made-up words, cut from one long seeded text, and the padding that gives rows their size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock_lab.workloads.seeded import TEXT_BYTES_MAX, Bytes, Draw, Ints, numbers, require

POOL_BYTES = 1 << 20
PIECE_BYTES_MAX = 1 << 16
SPACE_SHARE = 1 / 13
_ROWS_AT_ONCE = 1_024
_SPACE = ord(" ")
_A = ord("a")


class Words:
    """A text of POOL_BYTES random letters; a word is a place in it and a length.

    With `spaced`, one in thirteen characters is a space, but never the first or last of a word.
    """

    def __init__(self, seed: int, name: str, *, spaced: bool = False) -> None:
        n = numbers(0, POOL_BYTES)
        pool = (Draw(seed, f"{name}.letter").below(n, 26) + _A).astype(np.uint8)
        if spaced:
            pool[Draw(seed, f"{name}.space").chance(n, SPACE_SHARE)] = _SPACE
        # The beginning again after the end, so that a word may start at every place.
        self._pool: Bytes = np.concatenate([pool, pool[:PIECE_BYTES_MAX]])
        self._spaced = spaced
        self._place = Draw(seed, f"{name}.place")

    def cut(self, n: Ints, length: Ints) -> pa.Array:
        """A word for each number, of the given length."""
        ends = np.cumsum(length)
        total = int(ends[-1]) if ends.size else 0
        require(
            total <= TEXT_BYTES_MAX,
            f"{len(n)} texts of {total} bytes do not fit one batch; ask for fewer events at once",
        )
        offsets = np.zeros(len(n) + 1, np.int32)
        offsets[1:] = ends
        begin = offsets[:-1]
        shift = self._place.below(n, POOL_BYTES).astype(np.int32) - begin
        data = np.empty(total, np.uint8)
        # In blocks, because the index of every byte is four times the text and must stay in cache.
        for low in range(0, len(n), _ROWS_AT_ONCE):
            high = min(low + _ROWS_AT_ONCE, len(n))
            index = np.arange(offsets[low], offsets[high], dtype=np.int32)
            index += np.repeat(shift[low:high], length[low:high])
            np.take(self._pool, index, out=data[offsets[low] : offsets[high]], mode="clip")
        if self._spaced and total:
            edges = np.concatenate([begin[length > 0], offsets[1:][length > 0] - 1])
            at_edge = data[edges]
            data[edges] = np.where(at_edge == _SPACE, _A, at_edge)
        return pa.StringArray.from_buffers(len(n), pa.py_buffer(offsets), pa.py_buffer(data))


class ShortWords:
    """Words of 3 to `below - 1` letters, as the reference makes its names."""

    def __init__(self, seed: int, name: str, below: int, *, spaced: bool = False) -> None:
        self._words = Words(seed, name, spaced=spaced)
        self._length = Draw(seed, f"{name}.length")
        self._choices = below - 3

    def cut(self, n: Ints) -> pa.Array:
        return self._words.cut(n, self._length.below(n, self._choices) + 3)


class Padding:
    """The column `extra`: what is missing to the mean size, plus or minus a fifth of it."""

    def __init__(self, seed: int, name: str, row_bytes: int) -> None:
        self._words = Words(seed, name)
        self._length = Draw(seed, f"{name}.length")
        self._row_bytes = row_bytes

    def cut(self, n: Ints, used_bytes: int | Ints) -> pa.Array:
        """Padding for rows whose other columns have `used_bytes`; empty where that is enough."""
        missing = np.maximum(np.broadcast_to(self._row_bytes - used_bytes, n.shape), 0)
        spread = np.rint(missing * 0.2).astype(np.int64)
        return self._words.cut(n, missing - spread + self._length.below(n, 2 * spread))


def joined(*parts: pa.Array | str) -> pa.Array:
    """Texts put together row by row; a plain text is the same in every row."""
    return pc.binary_join_element_wise(*parts, "")


def lengths(texts: pa.Array) -> Ints:
    """Bytes of each text."""
    sizes: Ints = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes
