"""The distance that numbers were moved, in the norm that a noise law is charged for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.accounting import CUBE, GAUSSIAN, LAPLACE, Law


def norms(law: Law, moved: NDArray[Any], vectors: int = 1) -> NDArray[Any]:
    """The norm of each row, shape (..., numbers) to (...): squared for Gaussian noise, exact for integers.

    Args:
        law: of the noise; a joint one is drawn for each of the vectors that a row consists of.
        moved: how far each number was moved.
        vectors: how many vectors of equal length a row consists of.
    """
    if law == GAUSSIAN:
        return np.asarray((moved * moved).sum(axis=-1))
    if law == LAPLACE:
        return np.asarray(abs(moved).sum(axis=-1))
    apart = moved.reshape(*moved.shape[:-1], vectors, -1)
    highest, lowest = apart.max(axis=-1, initial=0), apart.min(axis=-1, initial=0)
    return np.asarray((np.maximum(highest, -lowest) if law == CUBE else highest - lowest).sum(axis=-1))
