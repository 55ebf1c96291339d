"""How noisy numbers are read back: estimates, their variances, and which noise is in them.

Nothing here is trusted: it sees only numbers with noise, so a mistake costs accuracy and never privacy. Each map has a
reader (`series_reader`, `step_reader`), and so has each design (`of`); a reader is worked out once.
"""

from dpwindows.reading import any_windows, designs, gaps
from dpwindows.reading.maps import series_reader, step_reader
from dpwindows.reading.reader import of

__all__ = ["any_windows", "designs", "gaps", "of", "series_reader", "step_reader"]
