"""Persons, and which person an event means when it needs one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock_lab.workloads.nexmark.options import NexmarkOptions
from penstock_lab.workloads.nexmark.order import FIRST_ID, elapsed_ms, newest_person
from penstock_lab.workloads.nexmark.text import Padding, ShortWords, joined, lengths
from penstock_lab.workloads.seeded import STAMP, Bytes, Draw, Ints, fixed_width_text, stamps

PERSONS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("email_address", pa.string()),
        ("credit_card", pa.string()),
        ("city", pa.string()),
        ("state", pa.string()),
        ("date_time", STAMP),
        ("extra", pa.string()),
    ]
)

FIRST_NAMES = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
LAST_NAMES = (
    "Shultz",
    "Abrams",
    "Spencer",
    "White",
    "Bartels",
    "Walton",
    "Smith",
    "Jones",
    "Noris",
)
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")

_ID_BYTES = 8
_CARD_DIGITS = 16


class Persons:
    """The rows of person events."""

    def __init__(self, options: NexmarkOptions, seed: int) -> None:
        self._options = options
        # Not when this file is imported: Arrow would import pandas for them, also where no row is
        # ever made.
        self._names = pa.array([f"{name} {last}" for name in FIRST_NAMES for last in LAST_NAMES])
        self._cities = pa.array(CITIES)
        self._states = pa.array(STATES)
        self._name = Draw(seed, "person.name")
        self._mailbox = ShortWords(seed, "person.mailbox", 7)
        self._host = ShortWords(seed, "person.host", 5)
        self._card = Draw(seed, "person.card")
        self._city = Draw(seed, "person.city")
        self._state = Draw(seed, "person.state")
        self._extra = Padding(seed, "person.extra", options.person_bytes)

    def rows(self, event: Ints) -> pa.RecordBatch:
        name = self._names.take(pa.array(self._name.below(event, len(self._names))))
        email = joined(self._mailbox.cut(event), "@", self._host.cut(event), ".com")
        card = fixed_width_text(_card(self._card.below(event, 10**_CARD_DIGITS)))
        city = self._cities.take(pa.array(self._city.below(event, len(self._cities))))
        state = self._states.take(pa.array(self._state.below(event, len(self._states))))
        used = sum((lengths(text) for text in (name, email, card, city, state)), start=_ID_BYTES)
        time_ms = self._options.base_time_ms + elapsed_ms(event, self._options.rate)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(newest_person(event) + FIRST_ID),
                name,
                email,
                card,
                city,
                state,
                stamps(time_ms * 1_000),
                self._extra.cut(event, used),
            ],
            schema=PERSONS,
        )


class SomePerson:
    """Whom an auction or a bid names: the hot person, or any of the active and the next few."""

    def __init__(
        self, options: NexmarkOptions, seed: int, role: str, hot_share: float, hot_place: int
    ) -> None:
        self._options = options
        self._is_hot = Draw(seed, f"{role}.is_hot")
        self._anyone = Draw(seed, f"{role}.anyone")
        self._hot_share = hot_share
        self._hot_place = hot_place

    def ids(self, event: Ints) -> Ints:
        known = newest_person(event) + 1
        active = np.minimum(known, self._options.people_active)
        anyone = known - active + self._anyone.below(event, active + self._options.person_lead)
        every = self._options.hot_person_every
        hot = (known - 1) // every * every + self._hot_place
        return np.where(self._is_hot.chance(event, self._hot_share), hot, anyone) + FIRST_ID


def _card(number: Ints) -> Bytes:
    """Sixteen digits in groups of four."""
    characters = np.full((len(number), _CARD_DIGITS + 3), ord(" "), np.uint8)
    for place in range(_CARD_DIGITS):
        number, digit = np.divmod(number, 10)
        characters[:, -1 - place - place // 4] = digit + ord("0")
    return characters
