"""The same two laws drawn by OpenDP, one number at a time, for whoever wants its name on a release.

Its discrete samplers are exact too (Canonne, Kamath, Steinke 2020, arXiv 2004.00010), and saturate at the ends of the
64-bit range. Their random bytes come from OpenSSL's generator, which the operating system seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law


def require_installed() -> None:
    """Refuse to go on without OpenDP.

    Raises:
        InputError: it is not installed.
    """
    if find_spec("opendp") is None:
        raise InputError(
            "noise is asked for from OpenDP, which is not installed: pip install 'dpwindows[opendp]', or ask for "
            "noise=exact"
        )


def sampler(law: Law, scale: float, count: int) -> Callable[[int], NDArray[np.int64]]:
    """A function that draws as many numbers as it is asked for, as the mechanism on zeros.

    Raises:
        ValueError: the law is neither Gaussian nor Laplace.
    """
    if law not in (GAUSSIAN, LAPLACE):
        raise ValueError(f"independent noise is discrete Gaussian or Laplace, not {law}")
    mechanism = _mechanism(law, scale)
    return lambda size: np.array(mechanism(_zeros(size)), dtype=np.int64)


@lru_cache(maxsize=2)
def _zeros(size: int) -> NDArray[np.int64]:
    # One array again and again: OpenDP keeps what it is given until Python looks for cycles, and copies lists for long.
    return np.zeros(size, dtype=np.int64)


@cache
def _mechanism(law: Law, scale: float) -> Any:
    # Imported where it is: its prelude loads other libraries too.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if law == GAUSSIAN:
        return make_gaussian(domain, l2_distance(T="i64"), scale=scale)
    return make_laplace(domain, l1_distance(T="i64"), scale=scale)
