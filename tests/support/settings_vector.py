"""The plug-in's settings as a file that its Python and its Scala form are both compared with.

Run this file to write `tests/vectors/settings.json` from the Python form.
"""

from __future__ import annotations

import json
from pathlib import Path

from penstock.settings.plugin import vector

FILE = Path(__file__).parents[1] / "vectors" / "settings.json"


def main() -> None:
    lines = ",\n".join(json.dumps(setting) for setting in vector())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
