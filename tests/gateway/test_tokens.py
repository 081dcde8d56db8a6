"""What a token may do, how it is rotated, and that no file of a server is anybody else's."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.consumers import consumers
from penstock.cli.serve import serve
from penstock.client import Client
from penstock.log.store.backup import restore, write_backup
from penstock.settings.server import Settings
from support.servers.http_server import Served, refusal, table
from support.servers.processes import wait_until

TOKENS = """
token-of-a-producer append
token-of-a-reader   read
token-of-a-query    query
token-of-an-admin   admin
"""


def token_file(folder: Path, text: str = TOKENS) -> Path:
    file = folder / "tokens"
    fresh = folder / "tokens.new"
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    return fresh.replace(file)


def test_a_token_may_do_what_its_scopes_say_and_no_more(tmp_path: Path) -> None:
    with Served(tmp_path / "data", "--token-file", str(token_file(tmp_path))) as served:
        assert served.token == "token-of-an-admin"
        assert served.make().status == 201
        assert served.append(table(1)).status == 200
        asked: dict[tuple[str, str], set[str]] = {
            ("GET", "/streams/s"): {"producer", "reader", "query"},
            ("POST", "/streams/s/rows"): {"producer"},
            ("GET", "/streams/s/rows?after=0"): {"reader", "query"},
            ("POST", "/queries/q/instances"): {"query"},
            ("PUT", "/consumers/g/streams/s"): {"reader"},
            ("POST", "/records?tags=a"): {"producer"},
            ("DELETE", "/streams/s"): set(),
            ("POST", "/queries/q/reset"): set(),
            ("GET", "/backup"): set(),
        }
        for (method, path), allowed in asked.items():
            for who in ("producer", "reader", "query"):
                answer = served.ask(method, path, b"", token=f"token-of-a-{who}")
                assert (answer.status == 403) == (who not in allowed), (method, path, who)
                if answer.status == 403:
                    assert answer.code == "forbidden"
                    assert "needs a token with the scope" in answer.message
        assert served.ask("DELETE", "/streams/s?force=1").status == 200


def test_a_token_is_rotated_while_the_server_runs(tmp_path: Path) -> None:
    with Served(tmp_path / "data", "--token-file", str(token_file(tmp_path))) as served:
        before = served.token
        token_file(tmp_path, "token-of-tomorrow admin\n")
        wait_until(
            "the new token counts",
            lambda: served.ask("GET", "/streams", token="token-of-tomorrow").status == 200,
        )
        assert served.ask("GET", "/streams", token=before).status == 401
        # Clients on this machine find the new one where they found the old one.
        assert '"token-of-tomorrow"' in (served.data / "server.json").read_text()


def test_no_token_is_taken_from_a_command_line(tmp_path: Path) -> None:
    for command, args in ((serve, ["--set", "nothing=1"]), (consumers, ["list"])):
        result = CliRunner().invoke(command, [*args, "--token", "secret-of-mine"])
        assert result.exit_code == 2
        assert "can be read by every user of this machine; set PENSTOCK_TOKEN" in result.output
        assert "secret-of-mine" not in result.output
    said = refusal(tmp_path / "data", "--log", "nats://me:secret@127.0.0.1:1/s")
    assert "give --log-credentials FILE" in said
    assert "secret" not in said


def test_a_token_comes_from_a_file_for_clients_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Served(tmp_path / "data") as served:
        args = ["list", "--url", served.url]
        file = str(served.data / "token")
        assert CliRunner().invoke(consumers, [*args, "--token-file", file]).exit_code == 0
        monkeypatch.setenv("PENSTOCK_TOKEN_FILE", file)
        assert CliRunner().invoke(consumers, args).exit_code == 0
        monkeypatch.setenv("PENSTOCK_TOKEN", "another-token")
        assert CliRunner().invoke(consumers, args).exit_code == 1


def open_to_others(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder.parent))
        for path in (folder, *folder.rglob("*"))
        if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]


def watched(pieces: Iterable[bytes], folder: Path) -> Iterator[bytes]:
    """The pieces of a backup: nobody else can read those before, while it is being written."""
    for piece in pieces:
        assert open_to_others(folder) == []
        yield piece


def test_nobody_else_can_read_a_data_folder_or_a_backup(tmp_path: Path) -> None:
    data, backup, restored = (tmp_path / name for name in ("data", "backup", "restored"))
    with Served(data) as served:
        served.make()
        served.append(table(1))
        assert open_to_others(data) == []
        write_backup(backup, watched(Client(served.url, served.token).backup(), backup))
    restore(backup, restored, Settings())
    assert open_to_others(backup) == []
    assert open_to_others(restored) == []


def test_a_folder_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data):
        pass
    for path in (data, data / "log", data / "log" / "data.mdb", data / "format.json"):
        path.chmod(0o755)
    with Served(data):
        assert open_to_others(data) == []
