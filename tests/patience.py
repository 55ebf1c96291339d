"""How long tests wait for other processes and threads: what takes longer on any machine, however busy, hangs."""

from __future__ import annotations

PATIENCE = 600.0
