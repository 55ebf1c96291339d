"""Readers of series over time, and of steps that were grouped: estimates of all windows in canonical order."""

from __future__ import annotations

import math

import numpy as np

from dpwindows.ask.periods import place_of, sizes
from dpwindows.ask.queries import ToDate, Tumbling
from dpwindows.ask.windows import count_windows, window_steps
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.grouped_steps import GroupedSteps
from dpwindows.kernel.families.periods import SeriesInPeriods, apply_along_each
from dpwindows.kernel.families.series import FromTotals, Series
from dpwindows.kernel.families.together import Together
from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.reading.grouped import nearest_windows
from dpwindows.reading.maps import series_reader, step_reader
from dpwindows.reading.matrix_filters import MatrixFilterReader
from dpwindows.reading.moments import FloatArray
from dpwindows.reading.reader import Coefficients, Reader, StepDesignReader, Weights, of, reads


@reads(Series)
@reads(SeriesInPeriods)
def read_series(shape: Series | SeriesInPeriods, design: Design) -> Reader:
    """A release is read as a whole, a stream as its steps come: least squares may know more in the end."""
    if isinstance(design, StepDesign):
        return SeriesStepReader(shape, design)
    if isinstance(shape, SeriesInPeriods) and isinstance(design.problem.window, ToDate):
        return ToDateReader(shape, design)
    return SeriesReader(shape, design)


class SeriesReader(Reader):
    """One series, by the reader of its map."""

    def __init__(self, shape: Series | SeriesInPeriods, design: Design) -> None:
        super().__init__(design)
        self._series = series_reader(shape.map, count_windows(self.window, self.steps))

    def decode(self, measured: FloatArray) -> FloatArray:
        return self._series.decode(measured)

    def decode_each(self, measured: FloatArray) -> FloatArray:
        return self._series.decode(measured.T).T

    def moment(self, power: int) -> FloatArray | None:
        return self._series.moment(power)

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        return {0: self._series.transposed(self.canonical(coefficients))}


@reads(FromTotals)
class FromTotalsReader(Reader):
    """Each window as the difference of two totals: up to its last step, and up to the step before its first."""

    def __init__(self, shape: FromTotals, design: Design) -> None:
        super().__init__(design)
        self._series = series_reader(shape.map, self.steps)
        first, last = window_steps(self.window, self.steps)
        self._before, self._last = first - 1, last

    def decode(self, measured: FloatArray) -> FloatArray:
        totals = self._series.decode(measured)
        totals = np.concatenate([np.zeros_like(totals[:1]), totals])
        return np.asarray(totals[self._last] - totals[self._before])

    def moment(self, power: int) -> FloatArray | None:
        """`sum (x - y)^power` over the weights x and y of two totals, from the sums of products of their powers."""
        weights = np.pad(self._series.decode(np.eye(self.design.rows)), ((1, 0), (0, 0)))
        found = np.zeros(len(self._last))
        for part in range(power + 1):
            products = weights ** (power - part) @ (weights**part).T
            found += math.comb(power, part) * (-1) ** part * products[self._last, self._before]
        return found

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        wanted = np.zeros(self.steps + 1)
        for (first, last), coefficient in coefficients.items():
            wanted[last] += coefficient
            wanted[first - 1] -= coefficient
        return {0: self._series.transposed(wanted[1:])}


class ToDateReader(Reader):
    """Counts to date, each period by itself; what was not measured is taken as 0, which no estimate needs."""

    def __init__(self, shape: SeriesInPeriods, design: Design) -> None:
        super().__init__(design)
        assert isinstance(self.window, ToDate)
        self._longest, self._each = shape.most, series_reader(shape.map, shape.most)
        self._measured, self._lengths = shape.rows_measured(self.window, self.steps), sizes(self.window, self.steps)

    def decode(self, measured: FloatArray) -> FloatArray:
        full = np.zeros((*self._measured.shape, *measured.shape[1:]))
        full[self._measured] = measured
        exists = np.arange(self._longest) < self._lengths[:, None]
        return np.asarray(apply_along_each(self._each.decode, np.moveaxis(full, 1, 0))[exists])

    def moment(self, power: int) -> FloatArray | None:
        """Those of the map, period after period."""
        moment = self._each.moment(power)
        return None if moment is None else np.concatenate([moment[:length] for length in self._lengths])

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        """By period; rows beyond its end hold no noise of any estimate."""
        by_period = np.split(self.canonical(coefficients), np.cumsum(self._lengths)[:-1])
        return {
            at: self._each.transposed(np.pad(wanted, (0, self._longest - len(wanted))))
            for at, wanted in enumerate(by_period)
            if wanted.any()
        }


class SeriesStepReader(StepDesignReader):
    """A series of one number a step, or from period to period; counts to date have one in each period."""

    def __init__(self, shape: Series | SeriesInPeriods, design: Design) -> None:
        super().__init__(design)
        self._shape, self._map = shape, step_reader(shape.causal)

    def _position(self, step: int) -> int | None:
        """The position of the map that a step is, None if nothing is measured at it."""
        return step if isinstance(self._shape, Series) else self._shape.position(self.window, step)

    def fresh(self) -> Memory:
        return self._map.fresh(1)

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The estimate of the window that ends at the step, none where none does, and the memory after it."""
        position = self._position(step)
        if position is None:
            return np.zeros(0), memory
        own = self._map.fresh(1) if position == 1 else memory
        return self._map.decode_step(position, measured[:, None], own)

    def moment_at(self, step: int, power: int) -> FloatArray:
        position = self._position(step)
        return np.zeros(0) if position is None else self._map.moment(position, power)[-1:]

    def moment(self, power: int) -> FloatArray:
        """All at once: one step after another it would take time for each."""
        if isinstance(self.window, ToDate):
            lengths = sizes(self.window, self.steps)
            known = self._map.moment(int(lengths.max()), power)
            return np.concatenate([known[:length] for length in lengths])
        windows = self.steps
        if isinstance(self.window, Tumbling):
            windows = place_of(self.window, self.steps)[0] - (self._position(self.steps) is None)
        return self._map.moment(windows, power) if windows else np.zeros(0)

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        lines: dict[int, dict[int, float]] = {}
        for (_, last), coefficient in coefficients.items():
            lane, position = 0, last
            if isinstance(self.window, Tumbling | ToDate):
                period, place = place_of(self.window, last)
                lane, position = (0, period) if isinstance(self.window, Tumbling) else (period, place)
            line = lines.setdefault(lane, {})
            line[position] = line.get(position, 0.0) + coefficient
        weights: Weights = {}
        for lane, line in lines.items():
            values = np.zeros(max(line))
            values[np.array(list(line)) - 1] = list(line.values())
            weights[lane] = self._map.transposed(values)
        return weights


@reads(Together)
class TogetherReader(StepDesignReader):
    """Estimates of the windows that end at a step, shape (lengths,)."""

    def __init__(self, shape: Together, design: Design) -> None:
        super().__init__(design)
        self._map = MatrixFilterReader(shape)

    def fresh(self) -> Memory:
        return self._map.fresh()

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        return self._map.decode_step(step, measured, memory)

    def moment_at(self, step: int, power: int) -> FloatArray:
        return np.asarray(self._map.moment(step, power)[-1])

    def moment(self, power: int) -> FloatArray:
        """One length after another."""
        return np.asarray(self._map.moment(self.steps, power).T.ravel())

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        lanes = np.zeros((max(last for _, last in coefficients), len(self._map.map.lengths)))
        for (_, last), coefficient in coefficients.items():
            lanes[last - 1, series] += coefficient
        return {0: self._map.transposed(lanes).ravel()}


@reads(GroupedSteps)
class GroupedReader(Reader):
    """The inner estimates, each read for all the windows that it is nearest to."""

    def __init__(self, shape: GroupedSteps, design: Design) -> None:
        super().__init__(design)
        self.inner_design, self.inner = shape.inner, of(shape.inner)
        # For each window the inner estimate that answers it, and how many steps its two ends were moved, together.
        self.nearest, self._moved = nearest_windows(self.window, self.steps, shape.size, shape.inner.problem)

    def decode(self, measured: FloatArray) -> FloatArray:
        return self.inner.decode(measured)[self.nearest]

    def moment(self, power: int) -> FloatArray | None:
        moment = self.inner.moment(power)
        return None if moment is None else moment[self.nearest]

    def bias_bound(self) -> FloatArray:
        return self._moved

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        of_groups = np.bincount(self.nearest, self.canonical(coefficients))
        first, last = window_steps(self.inner.window, self.inner.steps)
        inner = {(int(first[at]), int(last[at])): float(of_groups[at]) for at in np.flatnonzero(of_groups)}
        return self.inner.noise_weights(inner)
