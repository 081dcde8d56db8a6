"""The client's calls about generic records: the raw log, for protocols of one's own."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec

from penstock.client.wire import Wire
from penstock.model.ids import Lsn


class Record(msgspec.Struct, frozen=True):
    """A record as it was appended."""

    lsn: Lsn
    payload: bytes
    producer: str | None = None
    seq: int | None = None


class RecordCalls:
    """The part of a client that speaks of records."""

    _wire: Wire

    def append_record(
        self,
        tags: Sequence[str],
        payload: bytes,
        *,
        expect: tuple[str, int] | None = None,
        producer: str | None = None,
        seq: int | None = None,
    ) -> Lsn:
        """Append bytes under tags; with `expect` only if that is still the tag's last place.

        Without `producer` and `seq` a try that was repeated may leave a second record.
        """
        tag, at = expect if expect is not None else (None, None)
        query = {
            "tags": ",".join(tags),
            "expect_tag": tag,
            "expect": at,
            "producer": producer,
            "seq": seq,
        }
        return Lsn(self._wire.request("POST", ("records",), query, body=payload).json()["lsn"])

    def records(self, tag: str, after: int | None = None) -> list[Record]:
        """Every record with the tag whose place is after `after`, in order; without it, every one
        there is. After a place where some are gone it is refused as `trimmed`."""
        found: list[Record] = []
        more = True
        while more:
            got = self._wire.request("GET", ("records",), {"tag": tag, "after": after}).json()
            for one in got["records"]:
                payload = base64.b64decode(one["payload"])
                found.append(Record(Lsn(one["lsn"]), payload, one["producer"], one["seq"]))
                after = int(one["lsn"])
            more = bool(got["more"])
        return found

    def trim_records(self, tag: str, until: int) -> Lsn:
        """Remove the tag's records up to a place; up to where they are gone. With `until` 0 none
        is removed, and `records` after that place are all there are."""
        more, point = True, Lsn(0)
        while more:
            got = self._wire.request(
                "POST", ("records", "trim"), {"tag": tag}, body=b'{"until": %d}' % until
            ).json()
            point, more = Lsn(got["until"]), bool(got["more"])
        return point
