"""Arithmetic that rounds alike on every machine: for what is rounded to integers, and for searches in many dimensions.

IEEE 754 fixes the result of one addition, product, quotient or root. It does not fix in which order a library adds up
(transforms, matrix products and factors), nor the last bit of an exponential. Here all of these are made from single
operations on whole arrays, in a fixed order. They are slower than those of NumPy, and no more exact.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray

# The logarithm of 2 as a number of few bits and the rest, and terms of the series of exp and of log.
_LOG_2, _LOG_2_REST = 0.693145751953125, 1.42860682030941723212e-6
_EXP_TERMS, _LOG_TERMS = 13, 11
# Products of two numbers that are made faster than a transform.
_FEW = 1 << 14


def exp(values: FloatArray) -> FloatArray:
    """The exponential of every value."""
    times = np.rint(values * 1.4426950408889634)
    rest = (values - times * _LOG_2) - times * _LOG_2_REST
    series = np.ones_like(rest)
    for term in range(_EXP_TERMS, 0, -1):
        series = 1 + series * rest / term
    return np.asarray(np.ldexp(series, times.astype(np.int64)))


def log(values: FloatArray) -> FloatArray:
    """The natural logarithm of every value, all of them above 0."""
    part, times = np.frexp(values)
    small = part < 0.7071067811865476
    part, times = np.where(small, 2 * part, part), times - small
    ratio = (part - 1) / (part + 1)
    squared, series = ratio * ratio, np.zeros_like(ratio)
    for term in range(_LOG_TERMS, -1, -1):
        series = series * squared + 2 / (2 * term + 1)
    return np.asarray(series * ratio + times * _LOG_2_REST + times * _LOG_2)


def power(values: FloatArray, exponent: float) -> FloatArray:
    """Every value, all of them above 0, to the same power."""
    return exp(exponent * log(values))


def product(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """The product of a matrix and a vector, or of two vectors as an array of no axes."""
    return np.asarray((matrix * vector).sum(axis=-1))


def even_transform(values: FloatArray, size: int, count: int | None = None) -> FloatArray:
    """The Fourier transform of an even function on a circle.

    Args:
        values: at 0 and on, 0 where there are no more; shape (at most size / 2 + 1,).
        size: points on the circle, a power of two from 8 on.
        count: how many of the transform to return; None: all.

    Returns:
        `v_0 + (-1)^d v_n + 2 sum v_j cos(pi j d / n)` for d = 0..n, where n is half of the size; shape (n + 1,).
    """
    half = size // 2
    count = half + 1 if count is None else count
    if count * len(values) <= _FEW:
        return product(_cosines(count, len(values), size), values)
    known = np.zeros(half + 1)
    known[: len(values)] = values
    circle = np.concatenate([known, known[-2:0:-1]])
    # Two neighbours as one complex number; at the end their transforms are told apart.
    real, imaginary = _transform(circle[0::2], circle[1::2])
    real, imaginary = np.append(real, real[0]), np.append(imaginary, imaginary[0])
    cosine, sine = (one[: half + 1] for one in _circle(size))
    even, turned = real + real[::-1], imaginary + imaginary[::-1]
    return np.asarray((even + cosine * turned - sine * (real - real[::-1])) / 2)[:count]


@lru_cache(maxsize=16)
def _cosines(count: int, known: int, size: int) -> FloatArray:
    """The transform as a matrix, shape (count, known)."""
    cosines = 2 * _circle(size)[0][np.outer(np.arange(count), np.arange(known)) % size]
    cosines[:, [0, size // 2] if known > size // 2 else 0] /= 2
    return cosines


def _transform(real: FloatArray, imaginary: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The Fourier transform of complex numbers whose count is a power of two (Stockham's)."""
    size, real, imaginary = len(real), real[:, None], imaginary[:, None]
    while (half := len(real) // 2) > 0:
        cosine, sine = (one[:half, None] for one in _circle(2 * half))
        across, along = real[:half] - real[half:], imaginary[:half] - imaginary[half:]
        # Written in place: to stack the halves takes as long as to work them out.
        halved = np.empty((2, half, 2, size // (2 * half)))
        np.add(real[:half], real[half:], out=halved[0, :, 0])
        np.add(across * cosine, along * sine, out=halved[0, :, 1])
        np.add(imaginary[:half], imaginary[half:], out=halved[1, :, 0])
        np.subtract(along * cosine, across * sine, out=halved[1, :, 1])
        real, imaginary = halved.reshape(2, half, -1)
    return real.reshape(size), imaginary.reshape(size)


@lru_cache(maxsize=32)
def _circle(size: int) -> tuple[FloatArray, FloatArray]:
    """Cosines and sines of all multiples of a circle's part, a power of two, by halving angles."""
    if size <= 4:
        cosine, sine = np.array([1.0, 0.0, -1.0, 0.0]), np.array([0.0, 1.0, 0.0, -1.0])
        return cosine[:: 4 // size], sine[:: 4 // size]
    coarse, coarse_sine = _circle(size // 2)
    first = float(np.sqrt((1 + coarse[1]) / 2))
    first_sine = float(coarse_sine[1]) / (2 * first)
    cosine, sine = np.empty((2, size))
    cosine[0::2], sine[0::2] = coarse, coarse_sine
    cosine[1::2] = coarse * first - coarse_sine * first_sine
    sine[1::2] = coarse_sine * first + coarse * first_sine
    return cosine, sine


def exp_of_series(terms: FloatArray, count: int) -> FloatArray:
    """The first coefficients of `exp(sum c_j x^j)`, j from 1 on: shape (count,), from 1.

    Args:
        terms: the coefficients c_j from j = 0 on, the first of which is not looked at.
        count: how many to return.
    """
    coefficients = np.zeros(count)
    coefficients[0] = 1.0
    # By the derivative: k f_k = sum j c_j f_(k-j).
    slopes = (np.arange(len(terms)) * terms)[1:]
    for place in range(1, count):
        before = coefficients[max(0, place - len(slopes)) : place][::-1]
        coefficients[place] = (slopes[: len(before)] * before).sum() / place
    return coefficients


def cholesky(square: FloatArray) -> FloatArray:
    """The lower-triangular factor L of a positive definite `square = L L'`."""
    left, factor = square.copy(), np.zeros_like(square)
    for place in range(len(square)):
        factor[place:, place] = left[place:, place] / np.sqrt(left[place, place])
        column = factor[place + 1 :, place]
        left[place + 1 :, place + 1 :] -= column[:, None] * column
    return factor


def to_lattice(values: FloatArray, bits: int, kept: int) -> IntArray:
    """Values times `2^bits` in integers; of each value no more than `kept` bits after the point are kept.

    Rounding errors of 1e-13 alter one in `2^-kept 1e13` of the integers, so for values that are not worked out by this
    file few bits are kept.
    """
    kept = min(bits, kept)
    return np.asarray(np.rint(values * 2.0**kept).astype(np.int64) << (bits - kept))
