"""The client's calls about generic records: the raw log, for protocols of one's own."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.client.wire import Wire
from penstock.model.answers import EntryPlace, RecordPage, TrimmedRecords
from penstock.model.ids import Lsn
from penstock.model.requests import TrimBody


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
        return self._wire.request("POST", ("records",), query, body=payload).as_kind(EntryPlace).lsn

    def records(self, tag: str, after: int | None = None) -> list[Record]:
        """Every record with the tag whose place is after `after`, in order; without it, every one
        there is. After a place where some are gone it is refused as `trimmed`."""
        records: list[Record] = []
        more = True
        while more:
            got = self._wire.request("GET", ("records",), {"tag": tag, "after": after})
            page = got.as_kind(RecordPage)
            for line in page.records:
                records.append(Record(line.lsn, line.payload, line.producer, line.seq))
                after = line.lsn
            more = page.more
        return records

    def trim_records(self, tag: str, until: int) -> Lsn:
        """Remove the tag's records up to a place; up to where they are gone. With `until` 0 none
        is removed, and `records` after that place are all there are."""
        more, point = True, Lsn(0)
        while more:
            body = msgspec.json.encode(TrimBody(until))
            got = self._wire.request("POST", ("records", "trim"), {"tag": tag}, body=body)
            trimmed = got.as_kind(TrimmedRecords)
            point, more = trimmed.until, trimmed.more
        return point
