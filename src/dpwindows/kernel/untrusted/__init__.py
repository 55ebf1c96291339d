"""Searches whose results are proposals: a check in `kernel.bounds` accepts them or not, and no proof rests on them."""
