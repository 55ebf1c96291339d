"""Families of measurements: each the reading that makes many bounds one theorem, with its proof."""
