"""What Penstock is fed when it is shown or measured: a seeded generator, an open-loop sender."""

from __future__ import annotations
