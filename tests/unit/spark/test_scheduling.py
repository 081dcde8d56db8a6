"""When a session or an attached builder asks for the pool of queries with a deadline."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from penstock.errors import BadCall
from penstock.spark.scheduling import (
    ALLOCATION_FILE,
    ALLOCATION_KEY,
    MODE_KEY,
    schedule_settings,
)

SCHEDULE_KEY = "spark.penstock.schedule"
FILE = f"file:{ALLOCATION_FILE}"


def test_a_session_schedules_by_deadline_and_leaves_other_jobs_in_their_order() -> None:
    assert schedule_settings({}, is_session=True) == {
        SCHEDULE_KEY: "edf", MODE_KEY: "FAIR", ALLOCATION_KEY: FILE,
    }  # fmt: skip
    (pool,) = ElementTree.parse(ALLOCATION_FILE).getroot()
    assert (pool.get("name"), pool.findtext("schedulingMode")) == ("default", "FIFO")


def test_an_attached_builder_does_so_on_request_only() -> None:
    assert schedule_settings({}, is_session=False) == {}
    assert schedule_settings({SCHEDULE_KEY: "rdas"}, is_session=False) == {
        MODE_KEY: "FAIR", ALLOCATION_KEY: FILE,
    }  # fmt: skip


@pytest.mark.parametrize("is_session", [True, False])
def test_what_the_user_has_chosen_stays(is_session: bool) -> None:
    def added(**chosen: str) -> dict[str, str]:
        names = {"schedule": SCHEDULE_KEY, "mode": MODE_KEY, "file": ALLOCATION_KEY}
        user_conf = {names[name]: value for name, value in chosen.items()}
        return schedule_settings(user_conf, is_session=is_session)

    assert added(schedule="spark") == {}
    assert added(schedule="spark", mode="FIFO") == {}
    assert added(mode="FIFO") == {}
    assert added(schedule="edf", mode="FAIR") == {}
    assert added(schedule="edf", file="mine.xml") == {MODE_KEY: "FAIR"}
    assert added(mode="fair") == ({SCHEDULE_KEY: "edf"} if is_session else {})


@pytest.mark.parametrize("is_session", [True, False])
def test_an_order_of_ours_in_fifo_mode_is_refused_in_a_sentence(is_session: bool) -> None:
    with pytest.raises(BadCall, match=r"schedule is edf, .*mode is FIFO; set that to FAIR") as bad:
        schedule_settings({SCHEDULE_KEY: "edf", MODE_KEY: "FIFO"}, is_session=is_session)
    assert bad.value.code == "bad_setting"
