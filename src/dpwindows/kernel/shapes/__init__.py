"""Shapes of measurements: which exact answers go through which integer maps, and how what comes out is read back.

Each shape is one class that answers for encoding, decoding, variances and its certificate.
"""
