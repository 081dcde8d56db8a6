"""Books: what closes a cut, what a restarted server hears, ages, chains, and what explain says."""

from __future__ import annotations

import pytest

from penstock.admission.ages import Ages, FirstWaiting
from penstock.admission.book import Batch, BatchReport, QueryBook
from penstock.admission.books import AWAY_MS, QUERIES_MAX, AskingQuery, Books
from penstock.admission.chain import Stage, chain_deadlines
from penstock.admission.decide import decide
from penstock.admission.decision import Cut, Wait, data_wakes_from_ms
from penstock.admission.explain import explain, metrics_text
from penstock.admission.load import NO_LOAD, Load, OtherQuery
from penstock.admission.offer import CutsBy, Offer, Waiting
from penstock.admission.terms import CountedFrom, PolicyName, Terms
from penstock.cli.explain import cells, summary
from penstock.errors import BadCall
from support.admission.books import book_of, learn_line, offer_of

TERMS = Terms(1_000.0, PolicyName.DEADLINE)


def cut(book: QueryBook, at_ms: float, end: int = 7, predicted_ms: float = 100.0) -> int:
    decision = Cut("test", predicted_ms=predicted_ms, left_ms=500.0, core_ms=80.0)
    return book.cut_made(decision, Batch(1_000, None, 500.0, 2), at_ms, {"s": end})


@pytest.mark.parametrize("is_marker_first", [True, False])
def test_a_cut_is_learned_from_once_both_its_marker_and_its_report_are_in(
    is_marker_first: bool,
) -> None:
    book = QueryBook("q", TERMS)
    number = cut(book, 100.0)
    for is_marker in (is_marker_first, not is_marker_first):
        assert book.ours.batches == 0
        if is_marker:
            book.marked({"s": 7, "other": 1}, 350.0)
        else:
            book.reported(BatchReport(number, core_ms=9.0), 400.0)
    assert book.ours.batches == 1
    assert book.costs[-1].visible_ms == 250.0
    assert book.latencies_ms[-1] == 750.0
    assert book.slack_ms.last == 250.0
    assert not book.cuts


def test_a_marker_of_another_position_closes_nothing() -> None:
    book = QueryBook("q", TERMS)
    cut(book, 0.0, end=7)
    assert book.marked({"s": 6}, 100.0) is None
    assert book.marked({}, 100.0) is None


def test_the_first_cut_with_a_position_takes_the_marker_and_each_takes_one() -> None:
    book = QueryBook("q", TERMS)
    first, second = cut(book, 0.0, end=7), cut(book, 100.0, end=9)
    marked = book.marked({"s": 7}, 150.0)
    assert marked is not None
    assert marked.number == first
    marked = book.marked({"s": 9}, 250.0)
    assert marked is not None
    assert (marked.number, marked.visible_ms) == (second, 150.0)


def test_a_report_that_comes_twice_is_learned_from_once() -> None:
    book = QueryBook("q", TERMS)
    report = BatchReport(cut(book, 0.0), core_ms=9.0, visible_ms=90.0)
    assert book.reported(report, 100.0) is not None
    assert book.reported(report, 101.0) is None
    assert book.ours.batches == 1


def test_a_server_that_starts_anew_learns_from_old_reports_and_numbers_above_them() -> None:
    book = QueryBook("q", TERMS, first_cut=5_000)
    for number in range(60, 64):
        assert book.reported(BatchReport(number, 1_000, visible_ms=120.0), 1.0) is not None
    assert book.reported(BatchReport(64, 1_000), 1.0) is None  # nobody can tell its time any more
    assert book.ours.batches == 4
    assert book.totals.batches == 0  # whether it was late is not known
    assert cut(book, 2.0) == 5_000


def test_batches_without_data_have_no_cut_and_are_learned_from() -> None:
    book = QueryBook("q", TERMS)
    book.reported(BatchReport(0, 0, has_data=False, visible_ms=60.0), 1.0)
    book.reported(BatchReport(0, 0, has_data=False, visible_ms=80.0), 2.0)
    assert book.ours.without_data_ms() == 80.0
    assert book.ours.batches == 0


def test_an_open_cut_ends_with_the_next_question_or_ten_times_its_prediction() -> None:
    book = QueryBook("q", TERMS)
    cut(book, 0.0, predicted_ms=2_000.0)
    assert book.for_others().core_ms_left(1_000.0) == pytest.approx(40.0)
    assert book.for_others().core_ms_left(19_999.0) > 0.0
    assert book.for_others().core_ms_left(20_000.0) == 0.0
    book.expire(20_000.0)
    assert book.totals.cuts_expired == 1
    cut(book, 30_000.0)
    assert book.for_others().is_open
    book.asked(offer_of(1, 0.0), 30_100.0)
    assert not book.for_others().is_open
    assert len(book.cuts) == 1  # its marker may still come


def test_cuts_are_bounded_and_end_with_their_run() -> None:
    book = QueryBook("q", TERMS, instance=1)
    for number in range(30):
        cut(book, float(number))
    assert len(book.cuts) == 8
    book.run_started(2)
    assert not book.cuts


def test_another_run_of_a_query_keeps_its_history_but_not_its_cuts() -> None:
    books = Books(1)
    kept = books.heard(AskingQuery("q", "name", "app", 1), TERMS, 0.0)
    learn_line(kept.book)
    cut(kept.book, 0.0)
    again = books.heard(AskingQuery("q", "name", "app-2", 2), TERMS, 1.0)
    assert again is kept
    assert not kept.book.cuts
    assert kept.book.ours.batches == 8


def test_books_are_bounded_and_found_by_name() -> None:
    books = Books(1)
    for number in range(QUERIES_MAX + 1):
        books.heard(AskingQuery(f"q{number}", f"n{number}", "app", None), TERMS, 0.0)
    assert books.known("q0") is None
    assert books.named("n7").book.query == "q7"
    with pytest.raises(BadCall, match="knows no query 'n0'"):
        books.named("n0")


def test_only_queries_of_the_application_that_still_ask_are_a_load() -> None:
    books = Books(1)
    mine = books.heard(AskingQuery("q", None, "app", None), TERMS, 1e6)
    books.heard(AskingQuery("elsewhere", None, "other app", None), TERMS, 1e6)
    books.heard(AskingQuery("stopped", None, "app", None), TERMS, 0.0)
    books.heard(AskingQuery("beside", None, "app", None), TERMS, 1e6)
    assert [other.query for other in books.load_for(mine.book, 1e6).others] == ["beside"]


def test_a_query_that_waits_for_its_answer_or_works_on_a_batch_has_not_stopped() -> None:
    books = Books(1)
    mine = books.heard(AskingQuery("q", None, "app", None), TERMS, 0.0)
    beside = books.heard(AskingQuery("beside", None, "app", None), TERMS, 0.0)

    def others(now_ms: float) -> list[str]:
        return [other.query for other in books.load_for(mine.book, now_ms).others]

    assert others(AWAY_MS - 1) == ["beside"]
    assert others(AWAY_MS) == []
    beside.questions_held = 1
    assert others(AWAY_MS) == ["beside"]
    beside.questions_held = 0
    cut(beside.book, 5_000.0)
    ends_at_ms = next(iter(beside.book.cuts.values())).expires_at_ms
    assert ends_at_ms > AWAY_MS
    assert others(ends_at_ms - 1) == ["beside"]
    assert others(ends_at_ms) == []
    assert len(books.shown(ends_at_ms)) == 2


def test_an_operator_s_deadline_goes_before_the_query_s_own() -> None:
    book = QueryBook("q", TERMS)
    book.operator_set(300.0)
    book.terms_changed(Terms(2_000.0, PolicyName.DEADLINE))
    assert book.deadline_ms == 300.0
    book.operator_set(None)
    assert book.deadline_ms == 2_000.0


# Ages. A commit is stamped by the wall clock of whoever wrote it.


def test_a_row_ages_by_the_monotonic_clock_once_it_is_seen() -> None:
    ages = Ages()
    first = FirstWaiting(5, arrived_at_ms=1_000)
    assert ages.age_ms(0, first, wall_ms=1_040, now_ms=0.0, latest=5) == 40.0
    an_hour_on = 3_601_040
    assert ages.age_ms(0, first, wall_ms=an_hour_on, now_ms=10.0, latest=5) == 50.0
    assert ages.age_ms(0, first, wall_ms=0, now_ms=20.0, latest=5) == 60.0


def test_a_row_is_not_older_than_the_last_look_without_it_nor_younger_than_one_with_it() -> None:
    ages = Ages()
    assert ages.age_ms(0, None, wall_ms=1_000, now_ms=0.0, latest=4) is None
    # The clock has jumped an hour ahead since the commit was stamped, 30 ms ago at most.
    jumped = ages.age_ms(0, FirstWaiting(5, 1_000), wall_ms=3_601_000, now_ms=30.0, latest=9)
    assert jumped == 30.0
    # The batch took commits up to 8; 9 was visible at the last look, 500 ms ago, and the clock has
    # jumped back since.
    assert ages.age_ms(0, FirstWaiting(9, 1_010), wall_ms=5, now_ms=530.0, latest=9) == 500.0


def test_an_origin_counts_on_top_of_the_arrival() -> None:
    first = FirstWaiting(5, arrived_at_ms=1_000, older_ms=700)
    assert Ages().age_ms(0, first, wall_ms=1_040, now_ms=0.0, latest=5) == 740.0


# Chains


def stage(query: str, reads: str, writes: str, cost_ms: float, deadline_ms: float | None) -> Stage:
    return Stage(query, frozenset({reads}), frozenset({writes}), cost_ms, deadline_ms, True)


def test_an_end_to_end_deadline_is_divided_by_cost() -> None:
    chain = [
        stage("first", "a", "b", 100.0, 1_000.0),
        stage("second", "b", "c", 300.0, 1_000.0),
        stage("third", "c", "d", 100.0, 1_000.0),
    ]
    assert chain_deadlines(chain) == {"first": 200.0, "second": 800.0}


def test_of_two_ends_the_tighter_one_counts_and_a_circle_ends() -> None:
    chain = [
        stage("first", "a", "b", 100.0, None),
        stage("easy", "b", "x", 100.0, 10_000.0),
        stage("tight", "b", "a", 100.0, 600.0),
    ]
    deadlines = chain_deadlines(chain)
    assert deadlines["first"] == pytest.approx(600.0 * 200 / 300)


def test_a_stage_that_counts_from_arrival_is_no_part_of_a_chain() -> None:
    first = stage("first", "a", "b", 100.0, 1_000.0)
    second = Stage("second", frozenset("b"), frozenset("c"), 100.0, 1_000.0, False)
    assert chain_deadlines([first, second]) == {}


def test_books_apply_the_part_of_a_chain() -> None:
    books = Books(1)
    terms = Terms(1_000.0, PolicyName.DEADLINE, origin=CountedFrom.ORIGIN)
    for query, reads, writes in (("one", "a", "b"), ("two", "b", "c")):
        kept = books.heard(AskingQuery(query, None, "app", None), terms, 0.0)
        kept.reads, kept.writes = frozenset({reads}), frozenset({writes})
        learn_line(kept.book)
    books.divide_chains(0.0)
    assert books.named("one").book.deadline_ms == pytest.approx(500.0)
    assert books.named("two").book.deadline_ms == 1_000.0
    assert explain(books.named("one").book, NO_LOAD, 0.0).deadline_set_by == "chain"


def test_a_stage_that_has_stopped_is_no_part_of_its_chain_any_more() -> None:
    books = Books(1)
    slow = Terms(5_000.0, PolicyName.DEADLINE, origin=CountedFrom.ORIGIN)
    tight = Terms(1_000.0, PolicyName.DEADLINE, origin=CountedFrom.ORIGIN)

    def one_asks(now_ms: float) -> float | None:
        kept = books.heard(AskingQuery("one", None, "app", None), slow, now_ms)
        kept.reads, kept.writes = frozenset({"a"}), frozenset({"b"})
        books.divide_chains(now_ms)
        return kept.book.deadline_ms

    end = books.heard(AskingQuery("two", None, "app", None), tight, 0.0)
    end.reads, end.writes = frozenset({"b"}), frozenset({"c"})
    assert one_asks(0.0) == pytest.approx(500.0)
    end.questions_held = 1  # it waits for its answer for long
    assert one_asks(2 * AWAY_MS) == pytest.approx(500.0)
    end.questions_held = 0
    assert one_asks(5 * 3_600_000.0) == 5_000.0


# Explain


def test_explain_tells_the_decision_the_prediction_and_what_was_measured() -> None:
    book = book_of(PolicyName.DEADLINE, 1_000.0)
    learn_line(book)
    early, late = offer_of(2_000, 300.0), offer_of(2_000, 900.0)
    for now_ms in (0.0, 10.0):
        decision = decide(book, early, NO_LOAD, now_ms)
        book.decided(decision, early, now_ms)
    decision = decide(book, late, NO_LOAD, 600.0)
    assert isinstance(decision, Cut)
    book.decided(decision, late, 600.0)
    number = book.cut_made(decision, Batch(2_000, None, 900.0, 2), 600.0, {"s": 3})
    book.marked({"s": 3}, 725.0)
    book.reported(BatchReport(number, core_ms=40.0), 730.0)
    explained = explain(book, NO_LOAD, 1_000.0)
    newest, oldest = explained.decisions
    assert (newest.is_cut, newest.rows, newest.measured_ms, newest.ago_ms) == (
        True,
        2_000,
        125,
        400,
    )
    assert newest.predicted_ms == pytest.approx(120.0, abs=1)
    assert (oldest.is_cut, oldest.ago_ms) == (False, 990.0)  # waits that follow waits are one
    assert (explained.batches, explained.batches_late) == (1, 1)
    assert explained.slack_ms_p50 == pytest.approx(-25.0)
    assert explained.floor_ms == pytest.approx(100.0, abs=2)
    assert explained.errors["ours"] == pytest.approx(0.04, abs=0.01)


def test_metrics_are_text_that_prometheus_reads() -> None:
    book = QueryBook("q", TERMS, name='a "name"')
    learn_line(book)
    text = metrics_text([book], 0.0)
    assert 'penstock_admission_deadline_seconds{query="q",name="a \\"name\\""} 1\n' in text
    assert "# TYPE penstock_admission_late_total counter" in text


def test_bytes_and_files_that_wait_are_shown_where_no_rows_are_told() -> None:
    # 20 MB/s arrive in files of 4 MB, and batches take half of it.
    book, waiting_mb = book_of(PolicyName.DEADLINE, 1_000.0), 0
    for second in range(30):
        waiting_mb += 20
        waiting = Waiting(
            0, None, waiting_mb * 10**6, waiting_mb // 4, waiting_mb * 50.0, CutsBy.BYTES
        )
        offer = Offer((waiting,), 2)
        book.offered(offer, 1_000.0 * second)
        decision = Cut("test")
        book.decided(decision, offer, 1_000.0 * second)
        book.cut_made(decision, Batch(None, 10 * 10**6, 900.0, 2), 1_000.0 * second)
        waiting_mb -= 10
    explained = explain(book, NO_LOAD, 30_000.0)
    assert explained.rows_waiting is explained.rows_per_s is explained.backlog_rows_per_s is None
    assert (explained.bytes_waiting, explained.files_waiting) == (310_000_000, 77)
    assert explained.bytes_per_s == pytest.approx(20e6, rel=0.01)
    assert explained.backlog_bytes_per_s == pytest.approx(10e6, rel=0.01)
    lines = summary(explained)
    assert "20.0 MB/s arrive, 310.0 MB in 77 files wait: +10.0 MB/s" in lines
    assert cells(explained.decisions[0])[2] == "10.0 MB"
    text = metrics_text([book], 30_000.0)
    assert 'penstock_admission_backlog_bytes{query="q",name=""} 3.1e+08\n' in text
    assert 'penstock_admission_backlog_files{query="q",name=""} 77\n' in text
    assert "penstock_admission_backlog_rows{" not in text


def test_files_that_wait_are_shown_where_neither_rows_nor_bytes_are_told() -> None:
    book = book_of(PolicyName.DEADLINE, 1_000.0)
    book.offered(Offer((Waiting(0, files=3, oldest_age_ms=9.0, cuts_by=CutsBy.FILES),), 2), 0.0)
    assert "3 files wait" in summary(explain(book, NO_LOAD, 0.0))
    book.offered(Offer((Waiting(0, oldest_age_ms=9.0),), 2), 0.0)
    explained = explain(book, NO_LOAD, 0.0)
    assert "the sources do not tell how much waits" in summary(explained)
    assert explained.rows_per_s is None


def test_explain_warns_of_a_rate_that_cannot_be_sustained_beside_others() -> None:
    book = book_of(PolicyName.DEADLINE, 1_000.0)
    learn_line(book)
    book.cores = 2
    book.arrivals.rows.per_ms, book.arrivals.rows.growth_per_ms = 60.0, 3.0
    assert explain(book, NO_LOAD, 0.0).warning is None
    busy = Load((OtherQuery("a", core_share=1.8),))
    explained = explain(book, busy, 0.0)
    assert explained.sustainable_ms is None
    assert "cannot be sustained beside other queries" in (explained.warning or "")


def test_a_busy_stream_does_not_mean_a_decision_for_each_append() -> None:
    assert data_wakes_from_ms(Wait(1_000.0, ""), 200.0) == 600.0
    assert data_wakes_from_ms(Wait(203.0, ""), 200.0) == 205.0
