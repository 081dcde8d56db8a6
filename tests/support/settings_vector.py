"""The plug-in's settings as a file that its Python and its Scala form are both compared with.

Run this file to write `tests/vectors/settings.json` from the Python form.
"""

from __future__ import annotations

import json
from pathlib import Path

from penstock.settings.plugin import vector

FILE = Path(__file__).parents[1] / "vectors" / "settings.json"


def main() -> None:
    lists = [
        f"{json.dumps(kind)}: [\n" + ",\n".join(map(json.dumps, settings)) + "\n]"
        for kind, settings in vector().items()
    ]
    FILE.write_text("{\n" + ",\n".join(lists) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
