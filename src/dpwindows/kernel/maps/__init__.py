"""Integer maps: what is measured of exact answers, and how a noisy measurement is read back."""
