"""Records in which a task tells about itself: that it took over, and how far it has come.

Both are stored as JSON in *control records*: records with a producer and an instance and without a
sequence. A record with all three is data that waits for a marker; one without an instance commits
itself. PROTOCOL.md says who must do what with them.
"""

from __future__ import annotations

import msgspec

from penstock.model.ids import Instance, Lsn


class Progress(msgspec.Struct, frozen=True, tag="progress", tag_field="is"):
    """The marker of a task: commits its records with sequences `first` to `last`, both included.

    Records of the same instance up to `last` that are outside the span are discarded. With `last`
    before `first` it commits nothing but `positions`: how far each input had been read. The
    record carries every tag whose readers must see it, and the tag of the task's own log, on which
    it is appended conditionally; that is the fence.
    """

    producer: str
    instance: Instance
    first: int
    last: int
    positions: dict[str, Lsn] = {}


class Claim(msgspec.Struct, frozen=True, tag="claim", tag_field="is"):
    """The take-over of a task: `instance` is one more than that of the task log's last record.

    Appended conditionally on the task's own log, so that two claims never get one number. `run`
    tells the claimant that was refused on a repeat whether the claim that is there is its own.
    """

    producer: str
    instance: Instance
    run: str


Control = Progress | Claim

encode_control = msgspec.json.Encoder(order="deterministic").encode
decode_control = msgspec.json.Decoder(Control).decode
