"""The `penstock` command; nothing else imports it."""

from __future__ import annotations
