"""Was every committed answer right? DuckDB computes each batch anew from the committed input.

`check` reads what a query has read and written, marker by marker, and compares.
"""

from __future__ import annotations

from penstock_lab.oracle.check import Checked, check
from penstock_lab.oracle.compare import Difference

__all__ = ["Checked", "Difference", "check"]
