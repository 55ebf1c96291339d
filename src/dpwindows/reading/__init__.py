"""How noisy numbers are read back: estimates, their variances, and which noise is in them.

Nothing here is trusted: it sees numbers that are noisy already, so a mistake costs accuracy and never privacy. A reader
belongs to each map (`series_reader`, `step_reader`) and to each design (`of`), and is worked out once.
"""

from dpwindows.reading.designs import of
from dpwindows.reading.maps import series_reader, step_reader

__all__ = ["of", "series_reader", "step_reader"]
