"""A reader of the raw log: what it remembers, for how long, and where it goes on."""

from __future__ import annotations

import random

import pytest

from penstock.errors import BadCall, Bug
from penstock.log.raw.classify import (
    Bounds,
    Classifier,
    Committed,
    Recall,
    Saved,
    Verdict,
)
from penstock.log.raw.entry_facts import Fact, Marks, Plain, Raw, Takes
from penstock.log.raw.repeats import STEP_MS_MAX, Duplicates
from penstock.log.rules import RECORD_WINDOW
from penstock.model.ids import Instance, Lsn

FIRST_INSTANCE = Instance(1)


def raw(lsn: int, number: int = 0, producer: str = "q", payload: bytes = b"x") -> Raw:
    return Raw(Lsn(lsn), payload, producer, FIRST_INSTANCE, number)


def marks(lsn: int, *names: int, through: int = 0, producer: str = "q") -> Marks:
    return Marks(
        Lsn(lsn), producer, FIRST_INSTANCE, through, names=tuple(Lsn(name) for name in names)
    )


def committed(reader: Classifier, facts: list[Fact], fed: list[Fact]) -> list[tuple[int, int]]:
    """Feed the facts, answer recalls from all of `fed`, and say what was committed by what."""
    given_out: list[tuple[int, int]] = []

    def take(verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            if isinstance(verdict, Recall):
                take(reader.recall(verdict, [fact for fact in fed if fact.lsn >= verdict.first]))
            elif isinstance(verdict, Committed):
                given_out.append((verdict.lsn, verdict.by))

    for fact in facts:
        take(reader.feed(fact))
    return given_out


def drawn(seed: int, count: int) -> list[Fact]:
    """A log that keeps the fence: producers with batches, failed attempts and take-overs, and
    others that commit themselves and repeat."""
    rng = random.Random(seed)
    batches: dict[str, int] = {"a": 0, "b": 0, "c": 0}
    instances = dict.fromkeys(batches, 1)
    waiting: dict[str, list[Lsn]] = {name: [] for name in batches}
    facts: list[Fact] = []
    for place in range(1, count + 1):
        lsn, name = Lsn(place), rng.choice("abc")
        instance = Instance(instances[name])
        match rng.choice(("raw", "raw", "raw", "marks", "plain", "takes")):
            case "raw":
                ahead = rng.choice((0, 0, 1))
                facts.append(Raw(lsn, b"1", name, instance, batches[name] + ahead))
                if not ahead:
                    waiting[name].append(lsn)
            case "marks":
                names = [entry for entry in waiting[name] if rng.random() < 0.7]
                rng.shuffle(names)
                facts.append(Marks(lsn, name, instance, batches[name], names=tuple(names)))
                waiting[name], batches[name] = [], batches[name] + 1
            case "plain":
                facts.append(Plain(lsn, b"1", 10 * place, name, rng.randint(1, 1 + place // 5)))
            case "takes":
                instances[name] += 1
                waiting[name] = []
                facts.append(Takes(lsn, name, Instance(instances[name])))
    return facts


@pytest.mark.parametrize("seed", range(30))
def test_little_room_changes_nothing_but_what_is_read_again(seed: int) -> None:
    facts = drawn(seed, 150)
    roomy = committed(Classifier(), facts, facts)
    tight = Classifier(Bounds(unknown_max=2, unknown_bytes_max=1, producers_max=3))
    assert committed(tight, facts, facts) == roomy
    assert len(roomy) > 20


@pytest.mark.parametrize("seed", range(30))
def test_a_restart_anywhere_gives_out_the_rest_and_nothing_twice(seed: int) -> None:
    facts = drawn(seed, 120)
    whole = committed(Classifier(), facts, facts)
    rng = random.Random(seed)
    saved, given_out = Saved(), []
    bounds = Bounds(unknown_max=rng.choice((1, 4, 100)))
    read = 0
    while read < len(facts):
        reader = Classifier(bounds, saved)
        read = min(len(facts), read + rng.randint(1, 40))
        given_out += committed(reader, facts[saved.first - 1 : read], facts)
        saved = reader.saved()
    assert given_out == whole


def test_what_is_held_stays_within_its_bounds_whatever_comes() -> None:
    bounds = Bounds(unknown_max=10, unknown_bytes_max=50, producers_max=5)
    reader = Classifier(bounds)
    for lsn in range(1, 2_000):
        reader.feed(raw(lsn, lsn // 7, producer=f"q{lsn % 40}", payload=b"x" * 20))
        assert reader.unknown <= 10
        assert reader.unknown_bytes <= 50
        assert reader.producers <= 5


def test_a_payload_without_room_is_left_to_be_read_again() -> None:
    reader = Classifier(Bounds(unknown_bytes_max=3))
    for fact in (raw(1, payload=b"abc"), raw(2, payload=b"d")):
        assert reader.feed(fact) == []
    assert reader.feed(marks(3, 1, 2)) == [
        Committed(Lsn(1), Lsn(3), b"abc"),
        Committed(Lsn(2), Lsn(3), None),
    ]


def test_a_producer_forgotten_with_entries_waiting_is_read_again() -> None:
    reader = Classifier(Bounds(producers_max=1))
    facts: list[Fact] = [raw(1, producer="a"), raw(2, producer="b")]
    assert committed(reader, facts, facts) == []
    assert committed(reader, [marks(3, 1, producer="a")], facts) == [(1, 3)]
    assert committed(reader, [marks(4, 2, producer="b")], facts) == [(2, 4)]


def test_a_forgotten_producer_costs_others_nothing_and_is_let_go_when_it_is_settled() -> None:
    reader = Classifier(Bounds(producers_max=1))
    for fact in (raw(1, producer="a"), raw(2, producer="b"), raw(3, producer="c")):
        reader.feed(fact)
    assert reader.feed(marks(4, 3, producer="c")) == [Committed(Lsn(3), Lsn(4), b"x")]
    assert reader.saved().first == 1
    assert reader.feed(Takes(Lsn(5), "a", Instance(2))) == []
    assert reader.saved().first == 2
    (asked,) = reader.feed(marks(6, 2, producer="b"))
    assert isinstance(asked, Recall)
    assert asked.first == 2
    assert len(reader.recall(asked, [raw(2, producer="b")])) == 1
    assert reader.saved().first == 7
    assert reader.feed(raw(7, producer="d")) == []
    assert reader.feed(marks(8, 7, producer="d")) == [Committed(Lsn(7), Lsn(8), b"x")]


def test_a_producer_with_entries_waiting_is_refused_where_no_place_is_left_to_remember() -> None:
    reader = Classifier(Bounds(producers_max=1, aside_max=2))
    for lsn in (1, 2, 3):
        reader.feed(raw(lsn, producer=f"q{lsn}"))
    with pytest.raises(BadCall, match=r"'q3' is one too many of 3 .*raise aside_max"):
        reader.feed(raw(4, producer="q4"))


def test_entries_must_come_in_order() -> None:
    reader = Classifier()
    reader.feed(raw(2))
    with pytest.raises(Bug, match="out of order"):
        reader.feed(raw(2))


def test_a_recall_must_be_answered_first() -> None:
    reader = Classifier(Bounds(unknown_max=1))
    reader.feed(raw(1))
    reader.feed(raw(2))
    (asked,) = reader.feed(marks(3, 1, 2))
    assert isinstance(asked, Recall)
    with pytest.raises(Bug, match="after the recall"):
        reader.feed(raw(4))
    assert len(reader.recall(asked, [raw(1), raw(2)])) == 2
    with pytest.raises(Bug, match="not open"):
        reader.recall(asked, [])


def test_memory_of_repeats_does_not_grow_with_time() -> None:
    repeats = Duplicates(kept_ms=5_000, producers_max=60)
    most = 0
    for number in range(5_000):
        assert not repeats.is_repeat(f"p{number}", 1, number * 100)
        most = max(most, len(repeats))
    assert most <= 52


def test_a_log_with_an_entry_a_day_forgets_too() -> None:
    repeats = Duplicates(kept_ms=5 * STEP_MS_MAX, producers_max=10)
    for day in range(100):
        assert not repeats.is_repeat(f"p{day}", 1, day * 86_400_000)


def test_a_producer_too_many_is_refused_rather_than_another_forgotten() -> None:
    repeats = Duplicates(kept_ms=5_000, producers_max=2)
    repeats.is_repeat("a", 1, 0)
    repeats.is_repeat("b", 1, 0)
    with pytest.raises(BadCall, match="raise producers_max"):
        repeats.is_repeat("c", 1, 10)
    assert repeats.is_repeat("a", 1, 20)


@pytest.mark.parametrize("seed", range(10))
def test_any_order_within_the_window_is_told_from_repeats(seed: int) -> None:
    rng = random.Random(seed)
    repeats, seen = Duplicates(10**9, 1), set[int]()
    last = 0
    for step in range(3_000):
        last = max(last, last + rng.choice((0, 1, 1, 2, 40)))
        seq = rng.randint(max(0, last - RECORD_WINDOW + 1), last)
        assert repeats.is_repeat("p", seq, step) == (seq in seen)
        seen.add(seq)
        if rng.random() < 0.01:
            saved = repeats.saved()
            repeats = Duplicates(10**9, 1)
            repeats.restore(saved)
