"""Numbers with bounds, as fields of request bodies have them: decoding refuses what is outside."""

from __future__ import annotations

from typing import Annotated

import msgspec

NUMBER_MAX = (1 << 63) - 1

Number = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=NUMBER_MAX)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e15)]
