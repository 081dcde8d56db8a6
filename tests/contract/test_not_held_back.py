"""Nothing a producer leaves unfinished keeps a reader from what another has committed."""

from __future__ import annotations

from penstock.log.backends.local import LocalLog
from penstock.log.raw.classify import Classifier, Committed
from penstock.log.raw.entry_facts import fact_of
from penstock.log.reading.subscription import Subscription
from support.log.backends import Backend
from support.log.drafts import draft, make, mark, pending, stamp, take, values_of


def shown(reader: Subscription, classifier: Classifier) -> list[int]:
    """The values that the next commit shows; waits for one."""
    while True:
        entries = reader.next(120)
        assert entries, "no commit has come"
        facts = [fact for entry in entries if (fact := fact_of(entry)) is not None]
        verdicts = [verdict for fact in facts for verdict in classifier.feed(fact)]
        payloads = [verdict.payload for verdict in verdicts if isinstance(verdict, Committed)]
        if payloads:
            return [value for payload in payloads if payload for value in values_of(payload)]


def test_a_producer_that_stalls_keeps_no_other_ones_commits_from_a_reader(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    # Both write to the same substream, one through each client. Each commit is read before the
    # next batch is begun: none comes a batch late.
    first_log.run(make())
    first_log.run(take("stalls"))
    first_log.run(take("goes on"))
    backend.settle()
    classifier = Classifier()
    with other.subscribe(["s/s/0"]) as reader:
        left = first_log.run(pending(draft(0, -1), draft(0, -2), by=stamp("stalls")))
        for batch in range(5):
            first_log.run(pending(draft(0, -3), by=stamp("stalls", batch=1)))
            by = stamp("goes on", batch=batch)
            entries = other.run(pending(draft(0, batch), draft(0, batch + 10), by=by))
            other.run(mark(*entries, query="goes on", batch=batch))
            assert shown(reader, classifier) == [batch, batch + 10]
        first_log.run(mark(*left, query="stalls"))
        assert shown(reader, classifier) == [-1, -2], "and what it left counts when it comes back"
    assert classifier.unknown == 5
    backend.check()
