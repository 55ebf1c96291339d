"""Integer maps: what is measured of exact answers."""
