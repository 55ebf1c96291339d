"""Set before NumPy is loaded: test processes run side by side, and each with several BLAS threads would only wait."""

import os

for library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
