"""Which noise is in a combination of estimates: the weights that decoding puts on each number measured.

Estimates are a linear function D of the numbers measured, so a combination `sum_w c_w estimate_w` has the error
`(D'c) z` with z the independent noise values. `noise_weights` works out `D'c` by the transposes of the decoders, from
the design alone. Combinations of the same measurement have the covariance of their weights; whatever was measured
apart has none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

import numpy as np
import scipy

from dpwindows.ask.periods import place_of
from dpwindows.ask.queries import Tumbling
from dpwindows.ask.windows import longest_window, window_steps
from dpwindows.errors import InputError
from dpwindows.kernel.maps.crossed import CrossedFilters
from dpwindows.kernel.maps.filters import CausalFilter, CausalIdentity, Filter, Identity
from dpwindows.kernel.maps.integer_maps import CausalMap, FloatArray, IntegerMap, Memory
from dpwindows.kernel.maps.matrix_filters import MatrixFilter
from dpwindows.kernel.maps.repeated import Repeated
from dpwindows.kernel.shapes.blocks import BlocksDesign, blocks_of
from dpwindows.kernel.shapes.causal import BlocksShape, SeriesShape, StepDesign
from dpwindows.kernel.shapes.counters import CountersDesign
from dpwindows.kernel.shapes.crossed import CrossedDesign
from dpwindows.kernel.shapes.design import Design
from dpwindows.kernel.shapes.gaps import GapDesign
from dpwindows.kernel.shapes.grouped import CompressedDesign
from dpwindows.kernel.shapes.nested import ExtendedDesign, NestedDesign, NestedShape
from dpwindows.kernel.shapes.periods import PeriodShape
from dpwindows.kernel.shapes.series import SeriesDesign
from dpwindows.kernel.shapes.together import TogetherShape
from dpwindows.kernel.untrusted.decoding.crossed import filter_matrix
from dpwindows.kernel.untrusted.decoding.filters import invert_filter
from dpwindows.kernel.untrusted.decoding.nested import nested_weights, real_weights

# Weights on the numbers measured, by the part of the measurement that they are in; a part left out has none.
Weights = dict[Hashable, FloatArray]
Decoder = Callable[[FloatArray], FloatArray]
# Coefficients of windows, by first and last step.
Coefficients = Mapping[tuple[int, int], float]

# Numbers whose decoding is looked at together, and the most of them where a decoder is only known as a function.
_CHUNK, _MOST = 512, 4096


def noise_weights(design: Design, coefficients: Coefficients, series: int | None = None) -> Weights:
    """The weights of a combination of a design's estimates on its noise values, of one threshold.

    Args:
        design: what was measured.
        coefficients: the combination, by the first and last step of its windows.
        series: of a design that serves several families, the place of the one that they are windows of.

    Raises:
        InputError: the design's decoder has no transpose here and is too large to be written out.
    """
    match design:
        case CompressedDesign(inner=inner):
            return noise_weights(inner, _inner(design, coefficients))
        case SeriesDesign(map=Repeated() as repeated):
            return _of_stretches(repeated, _canonical(design, coefficients))
        case SeriesDesign(map=measured):
            return {0: _transposed(measured, _canonical(design, coefficients))}
        case BlocksDesign():
            return _of_blocks(design, coefficients)
        case NestedDesign() | ExtendedDesign() | GapDesign():
            return {0: design.noise_weights(_canonical(design, coefficients))}
        case CountersDesign(map=measured):
            starts: dict[int, FloatArray] = {}
            for (first, last), coefficient in coefficients.items():
                line = starts.setdefault(first, np.zeros(measured.length))
                line[last - first] += coefficient
            return {first: _transposed(measured, line) for first, line in starts.items()}
        case CrossedDesign():
            return _of_crossed(design, coefficients)
        case StepDesign(shape=SeriesShape(map=causal)):
            line = np.zeros(max(last for _, last in coefficients))
            for (_, last), coefficient in coefficients.items():
                line[last - 1] += coefficient
            return {0: _transposed_causal(causal, line)}
        case StepDesign(shape=TogetherShape(map=mixed)):
            lanes = np.zeros((max(last for _, last in coefficients), mixed.lanes))
            for (_, last), coefficient in coefficients.items():
                lanes[last - 1, series or 0] += coefficient
            return {0: transposed_mixed(mixed, lanes).ravel()}
        case StepDesign(shape=BlocksShape() as shape):
            return _of_step_blocks(shape, coefficients)
        case StepDesign(shape=NestedShape() as shape):
            by_start = np.zeros((shape.longest, max(last for _, last in coefficients)))
            for (first, last), coefficient in coefficients.items():
                by_start[last - first, first - 1] += coefficient
            found = nested_weights(shape.taps, by_start)
            return {0: found / real_weights(shape.weights, shape.longest)[:, None]}
        case StepDesign(shape=PeriodShape() as shape):
            return _of_periods(shape, coefficients)
    return {0: _by_definition(design, _canonical(design, coefficients))}


def _canonical(design: Design, coefficients: Coefficients) -> FloatArray:
    """The coefficients of all windows in canonical order."""
    first, last = window_steps(design.problem.window, design.problem.steps)
    places = {window: place for place, window in enumerate(zip(first.tolist(), last.tolist(), strict=True))}
    wanted = np.zeros(len(first))
    for window, coefficient in coefficients.items():
        wanted[places[window]] += coefficient
    return wanted


def _inner(design: CompressedDesign, coefficients: Coefficients) -> Coefficients:
    """The combination of the estimates for groups of steps that stands for one of windows."""
    wanted = _canonical(design, coefficients)
    of_groups = np.bincount(design.nearest, wanted)
    first, last = window_steps(design.inner.problem.window, design.inner.problem.steps)
    return {(int(first[at]), int(last[at])): float(of_groups[at]) for at in np.flatnonzero(of_groups)}


def _of_blocks(design: BlocksDesign, coefficients: Coefficients) -> Weights:
    """On each block `X = S (E P)'`, with S and E the two decoders and P the numbers: for V on X, `P ~ E'(S'V)'`."""
    steps, maps = design.problem.steps, design.by_length
    blocks = blocks_of(steps, longest_window(design.problem.window, steps), design.width)
    squares: dict[int, FloatArray] = {}
    for (first, last), coefficient in coefficients.items():
        at = (first - 1) // design.width
        square = squares.setdefault(at, np.zeros((blocks[at].starts, blocks[at].ends)))
        # Ends are measured last to first.
        square[first - blocks[at].first, blocks[at].ends - 1 - (last - blocks[at].first)] += coefficient
    return {
        at: _transposed(maps[square.shape[1]], _transposed(maps[square.shape[0]], square).T).ravel()
        for at, square in squares.items()
    }


def _of_step_blocks(shape: BlocksShape, coefficients: Coefficients) -> Weights:
    """The same, where a block's ends are measured as they come, by a causal map."""
    squares: dict[int, FloatArray] = {}
    for (first, last), coefficient in coefficients.items():
        at = (first - 1) // shape.width
        square = squares.setdefault(at, np.zeros((shape.width, shape.extent)))
        start = first - 1 - at * shape.width
        square[shape.width - 1 - start if shape.backward else start, last - 1 - at * shape.width] += coefficient
    return {
        at: _transposed_causal(shape.ends, _transposed(shape.starts, square).T).ravel()
        for at, square in squares.items()
    }


def _of_stretches(repeated: Repeated, wanted: FloatArray) -> Weights:
    """Each stretch by itself; rows beyond the end of one hold no noise of any estimate."""
    stretches = np.split(wanted, np.cumsum(repeated.lengths)[:-1])
    longest = repeated.map.length
    return {
        at: _transposed(repeated.map, np.pad(stretch, (0, longest - len(stretch))))
        for at, stretch in enumerate(stretches)
        if stretch.any()
    }


def _of_periods(shape: PeriodShape, coefficients: Coefficients) -> Weights:
    """One series from window to window, or for counts to date one in each period."""
    lines: dict[int, dict[int, float]] = {}
    for (_, last), coefficient in coefficients.items():
        period, place = place_of(shape.window, last)
        lane, position = (0, period) if isinstance(shape.window, Tumbling) else (period, place)
        line = lines.setdefault(lane, {})
        line[position] = line.get(position, 0.0) + coefficient
    found: Weights = {}
    for lane, line in lines.items():
        series = np.zeros(max(line))
        series[np.array(list(line)) - 1] = list(line.values())
        found[lane] = _transposed_causal(shape.map, series)
    return found


def _of_crossed(design: CrossedDesign, coefficients: Coefficients) -> Weights:
    squares: dict[int, FloatArray] = {}
    for (first, last), coefficient in coefficients.items():
        at = (first - 1) // design.width
        block, found = design.blocks[at]
        square = squares.setdefault(at, np.zeros(found.shape))
        square[first - block.first, last - block.first] += coefficient
    return {at: _transposed_crossed(design.blocks[at][1], square) for at, square in squares.items()}


def _transposed_crossed(found: CrossedFilters, square: FloatArray) -> FloatArray:
    """The decoder of crossed counters backwards: pins, least squares (which is symmetric), filters and weights."""
    by_start, by_end, inverse, root = found.decoder()

    def solve(right: FloatArray) -> FloatArray:
        return np.asarray(by_start @ ((by_start.T @ right @ by_end) * inverse) @ by_end.T)

    if pins := len(root):
        pinned = np.arange(pins)
        square = square.copy()
        square[pinned + 1, pinned] -= scipy.linalg.cho_solve((root, True), solve(square)[pinned + 1, pinned])
    solved = solve(square)
    starts, ends = solved.shape
    along_ends = np.array(found.start_weights)[:, None] * (solved @ filter_matrix(found.taps, ends).T)
    weighed = (solved * np.array(found.end_weights))[::-1]
    return np.concatenate([along_ends.ravel(), (filter_matrix(found.taps, starts) @ weighed).ravel()])


def _transposed(measured: IntegerMap, wanted: FloatArray) -> FloatArray:
    """The transpose of a map's decoder along the first axis: shape (length, ...) to (rows, ...)."""
    at_once = _transposed_at_once(measured, wanted)
    return _in_chunks(measured.rows, measured.decode, wanted) if at_once is None else at_once


def _transposed_causal(measured: CausalMap, wanted: FloatArray) -> FloatArray:
    """The same for a causal map at positions 1..len(wanted)."""
    if (at_once := _transposed_at_once(measured, wanted)) is not None:
        return at_once
    positions = range(1, len(wanted) + 1)
    rows = [measured.rows_at(position) for position in positions]

    def decode(numbers: FloatArray) -> FloatArray:
        memory: Memory = measured.fresh(numbers.shape[1])
        found, place = [], 0
        for position, count in zip(positions, rows, strict=True):
            estimate, decoded = measured.decode(position, numbers[place : place + count], memory)
            memory, place = memory | decoded, place + count
            found.append(estimate)
        return np.stack(found)

    return _in_chunks(sum(rows), decode, wanted)


def _transposed_at_once(measured: IntegerMap | CausalMap, wanted: FloatArray) -> FloatArray | None:
    """The same for maps whose transpose is known; None for others."""
    match measured:
        case Identity(unit=unit) | CausalIdentity(unit=unit):
            return wanted / unit
        case Filter(taps=taps) | CausalFilter(taps=taps):
            return _inverted_backwards(taps, wanted)
    return None


def _inverted_backwards(taps: tuple[int, ...], wanted: FloatArray) -> FloatArray:
    return invert_filter(taps, wanted[::-1])[::-1]


def transposed_mixed(mixed: MatrixFilter, wanted: FloatArray) -> FloatArray:
    """The transpose of a mixing filter's decoder: from estimates to measured numbers, both of shape (steps, lanes)."""
    mirrored = MatrixFilter(mixed.lanes, tuple(mixed.matrices.transpose(0, 2, 1).ravel().tolist()))
    memory, found = mirrored.fresh(), []
    for weights in wanted[::-1]:
        estimate, memory = mirrored.decode(weights, memory)
        found.append(estimate)
    return np.array(found[::-1])


def _in_chunks(rows: int, decode: Decoder, wanted: FloatArray) -> FloatArray:
    """`D' wanted` from D applied to unit vectors, many at a time."""
    parts = [np.tensordot(decode(units).T, wanted, axes=1) for units in _units(rows)]
    return np.concatenate(parts)


def _units(rows: int) -> Iterator[FloatArray]:
    for first in range(0, rows, _CHUNK):
        count = min(_CHUNK, rows - first)
        units = np.zeros((rows, count))
        units[np.arange(first, first + count), np.arange(count)] = 1.0
        yield units


def _by_definition(design: Design, wanted: FloatArray) -> FloatArray:
    """The transpose of a decoder that is only known as a function of all numbers."""
    if design.rows > _MOST:
        raise InputError(
            f"the strategy {design.strategy} measured {design.rows:,} numbers for {design.problem.window}, and how "
            f"their noise is correlated is worked out for at most {_MOST:,}: release with --strategy auto"
        )
    return np.array([wanted @ design.decode(unit) for unit in np.eye(design.rows)])
