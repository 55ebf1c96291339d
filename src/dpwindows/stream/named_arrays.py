"""Named arrays as bytes and back, and the digests that damage shows in."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping

import numpy as np


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays of numbers, of any shape, as the bytes of an uncompressed `.npz` file."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # no array is named as its one option is
    return stream.getvalue()


def unpack(content: bytes) -> dict[str, np.ndarray]:
    """The arrays that `pack` was given. Raises `ValueError` if the bytes are something else."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def digest(*parts: str | int | bytes) -> str:
    """SHA-256 of a sequence of values; different sequences have different digests."""
    found = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode()
        found.update(f"{type(part).__name__}:{len(content)}:".encode())
        found.update(content)
    return found.hexdigest()
