"""JetStream under a benchmark: whether it can run here, and what of it a reader must know."""

from __future__ import annotations

import subprocess
from typing import Any

from penstock.errors import BadCall
from penstock.testing.nats_servers import nats_program

REPLICAS = 3


def require_servers(instead: str) -> None:
    """Refuses without the program of the servers; `instead` is what else to choose."""
    if nats_program() is None:
        raise BadCall(
            "there is no nats-server here, and JetStream runs on three; install Debian's "
            f"nats-server, or choose {instead}",
            code="missing",
        )


def settings() -> dict[str, Any]:
    """For the result file. Servers keep their own default of when to sync, two minutes."""
    program = nats_program()
    if program is None:
        return {}
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return {"replicas": REPLICAS, "servers": asked.stdout.strip(), "sync": "the servers' default"}
