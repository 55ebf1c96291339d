"""Families of measurements: each file proves one theorem that gives the bounds of many measurements."""
