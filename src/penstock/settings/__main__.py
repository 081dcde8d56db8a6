"""`python -m penstock.settings` prints docs/settings.md."""

from __future__ import annotations

import sys

from penstock.settings.page import settings_page

if __name__ == "__main__":
    sys.stdout.write(settings_page())
