"""Puts what was committed before the oracle."""

from __future__ import annotations

from penstock.client import Client
from penstock_lab.demo.committed import Marked, commits
from penstock_lab.demo.oracle import (
    Commit,
    Verdict,
    check_batches,
    check_nothing_else,
    check_view,
    materialised,
)
from penstock_lab.demo.queries import AUCTION_TOTALS, CATEGORY_LEADERS, LEADERS_FROM_BIDS, Step


def check(client: Client, marked: dict[str, list[Marked]]) -> dict[str, Verdict]:
    """A verdict per query, over every marker there is. The queries must have drained and stopped.

    Each batch is compared on its own, then the stream with the markers, then the final view with
    the whole input; the last query's view also with what the first one was fed.
    """
    verdicts: dict[str, Verdict] = {}
    for step in (AUCTION_TOTALS, CATEGORY_LEADERS):
        committed = list(commits(client, step, marked[step.name]))
        verdicts[step.name] = _check_query(client, step, committed)
    leaders = list(commits(client, CATEGORY_LEADERS, marked[CATEGORY_LEADERS.name]))
    if leaders:
        view = materialised(CATEGORY_LEADERS.question, leaders)
        bids = client.read(AUCTION_TOTALS.reads)
        verdicts[CATEGORY_LEADERS.name].add(check_view(LEADERS_FROM_BIDS, bids, view))
    return verdicts


def _check_query(client: Client, step: Step, committed: list[Commit]) -> Verdict:
    verdict = check_batches(step.question, committed)
    verdict.add(check_nothing_else(step.question, committed, client.read(step.name)))
    if committed:
        view = materialised(step.question, committed)
        verdict.add(check_view(step.question, client.read(step.reads), view))
    return verdict
