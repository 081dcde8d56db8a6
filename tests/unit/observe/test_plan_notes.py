"""Notes on plans, read from the plug-in's JSON."""

from __future__ import annotations

from penstock.observe.plan_notes import PlanNote, notes_in


def test_notes_are_read_in_their_order() -> None:
    notes_json = """[
        {"rule": "panes", "operator": 0, "text": "panes: 12 windows per row", "since_batch": 3},
        {"rule": "panes", "operator": 1, "text": "left to Spark: sessions", "since_batch": 0}
    ]"""
    assert notes_in(notes_json) == [
        PlanNote("panes", 0, "panes: 12 windows per row", 3),
        PlanNote("panes", 1, "left to Spark: sessions", 0),
    ]


def test_a_run_without_notes_has_none() -> None:
    assert notes_in("[]") == []
