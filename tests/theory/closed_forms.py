"""The closed forms that `docs/growth.md` states and proves: standard errors per unit of noise."""

from __future__ import annotations

import math


def root_interval_norm(length: int) -> float:
    """`q(n)`: the squared norm of n consecutive ones under the filter `(1 - B)^(1/2)`."""
    return 4 / math.pi * sum(1 / (2 * j - 1) for j in range(1, length + 1))


def rolling_event(length: int, k: int) -> float:
    """Rolling counts, event level, one threshold, or any k runs of changed answers."""
    runs = min(k, length)
    variance = 1 + math.log(length) / math.pi
    filtered = math.sqrt(variance * (1 + runs * root_interval_norm(-(-length // runs))))
    return min(filtered, math.sqrt(length))


def rolling_event_saturated(length: int) -> float:
    """Rolling counts, event level, one threshold, any k."""

    def at(shift: int) -> float:
        block = length + shift - 1
        return (math.sqrt(block) + math.sqrt(-(-block // shift))) / 2

    return min(at(shift) for shift in range(1, length + 1))


def rolling_event_pure(length: int, k: int) -> float:
    """Rolling counts, event level, one threshold, Laplace noise: standard error times epsilon."""

    def at(every: int) -> float:
        return math.sqrt(4 * every - 2) * (2 * k + -(-length // every) / math.sqrt(every))

    return min(math.sqrt(2) * length, *map(at, range(1, length + 1)))


def rolling_item(steps: int, length: int, k: int) -> float:
    """Rolling counts, one item added or removed, one threshold."""
    runs = min(steps, k * -(-steps // (length + 1)))
    variance = 1 + math.log(length) / math.pi
    filtered = math.sqrt(variance * (steps / length + runs * root_interval_norm(-(-steps // runs))))
    return min(filtered, math.sqrt(steps))


def any_item(steps: int) -> float:
    """Any windows, one item added or removed, one threshold."""
    scales = (steps - 1).bit_length()
    return 1 + sum(math.sqrt(2 * -(-steps // 2**j) - 1) for j in range(1, scales + 1))
