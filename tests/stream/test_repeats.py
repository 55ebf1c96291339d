"""A step of a stream is drawn once: the same call again returns its rows, and other events for it are refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import dpwindows as dw

pytestmark = pytest.mark.usefixtures("one_engine")


def _log(*events: tuple[str, int]) -> pa.Table:
    return pa.table({"who": [item for item, _ in events], "at": [time for _, time in events]})


def test_a_step_is_released_once(tmp_path: Path) -> None:
    plan = dw.StreamPlan([dw.Rolling(2)], unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    events = _log(("a", 0), ("b", 0))
    with dw.Stream.create(tmp_path / "state", plan, item="who", time="at", start=0, step=1) as stream:
        first = stream.advance(events, 1)
        for again in (stream.advance(events, 1), stream.advance(None, 1)):
            assert again.to_arrow().equals(first.to_arrow())
            assert again.metadata == first.metadata
        for other in (_log(("a", 0)), _log(("a", 0), ("b", 0), ("c", 0)), _log(("a", 0), ("c", 0))):
            with pytest.raises(dw.InputError, match="never released again"):
                stream.advance(other, 1)
        with pytest.raises(dw.InputError, match="never released again"):
            stream.advance(None, 1, empty=True)
        assert stream.show().to_arrow().equals(first.to_arrow())
