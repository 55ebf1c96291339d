"""Integer maps: what is measured of exact answers; how that is read back stands in `kernel.untrusted.decoding`."""
