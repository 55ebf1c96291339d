"""How many times as long the longer random searches are as in `make test`: the environment says (`make search`)."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("SEARCH_TIMES", "1"))
