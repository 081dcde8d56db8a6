"""Certificates that tests make for servers of theirs."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    """A certificate in PEM, which vouches for itself, and its key."""

    cert: Path
    key: Path

    @property
    def options(self) -> tuple[str, ...]:
        """For `penstock serve`."""
        return "--tls-cert", str(self.cert), "--tls-key", str(self.key)

    def trusting(self) -> ssl.SSLContext:
        """For a client of that server."""
        return ssl.create_default_context(cafile=str(self.cert))


def make_certificate(folder: Path, address: str) -> Certificate:
    """Make one for a server at this IP address."""
    made = Certificate(folder / "cert.pem", folder / "key.pem")
    name = f"subjectAltName=IP:{address}"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", name,
         "-keyout", str(made.key), "-out", str(made.cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return made
