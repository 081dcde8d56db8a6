"""Settings keep their bounds, and the file made from them is up to date."""

from __future__ import annotations

import json

import pytest

from penstock.errors import BadCall
from penstock.settings import plugin
from penstock.settings.page import amount
from penstock.settings.server import Settings, server_settings, settings_from
from penstock.settings.setting import GIB, MIB, Setting
from support.settings_vector import FILE


def test_the_vector_is_what_its_program_writes() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8")) == plugin.vector()


@pytest.mark.parametrize("setting", server_settings(), ids=lambda setting: setting.name)
def test_a_server_setting_out_of_bounds_is_refused_by_name(setting: Setting) -> None:
    assert setting.min is not None
    assert setting.max is not None
    for value in (setting.min, setting.max):
        assert getattr(Settings(**{setting.name: value}), setting.name) == value
    for value in (setting.min - 1, setting.max + 1):
        with pytest.raises(BadCall, match=f"{setting.name} is {value}, and must be"):
            settings_from({setting.name: str(value)})


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadCall, match=r"there is no setting 'speed'; there are .*queue_max"):
        settings_from({"speed": "1"})
    with pytest.raises(BadCall, match="queue_max is 'many', and must be a number"):
        settings_from({"queue_max": "many"})


def test_every_default_keeps_its_bounds() -> None:
    for setting in (*server_settings(), *plugin.SESSION_SETTINGS, *plugin.OPTIONS):
        if setting.unit is not None and setting.default is not None:
            assert isinstance(setting.default, int)
            setting.refuse_out_of_bounds(setting.default)


def test_a_choice_has_its_default_among_the_words_it_takes() -> None:
    settings = (*server_settings(), *plugin.SESSION_SETTINGS, *plugin.OPTIONS)
    chosen = [each for each in settings if each.choices and each.default is not None]
    assert {plugin.COMMIT_MODE, plugin.SCHEDULE, plugin.DEADLINE_FROM} <= set(chosen)
    assert {each.name: each.default for each in chosen if each.default not in each.choices} == {}


def test_names_are_given_once() -> None:
    names = [each.name for each in (*plugin.SESSION_SETTINGS, *plugin.OPTIONS)]
    assert len(set(names)) == len(names)


def test_bounds_are_said_in_words() -> None:
    assert Setting("n", "", "rows", 1, 1, 2).bounds() == "1 to 2"
    assert Setting("n", "", "rows", 1, 1).bounds() == "1 or more"
    assert Setting("n", "", "rows", 1, max=2).bounds() == "at most 2"
    assert Setting("n", "", None, "").bounds() == ""


def test_bytes_are_shown_in_the_largest_whole_unit() -> None:
    assert [amount(size, "bytes") for size in (GIB, 3 * MIB, 0, 1)] == [
        *("1 GiB", "3 MiB", "0 bytes", "1 byte"),
    ]
    assert amount(GIB, "rows") == "1,073,741,824"
