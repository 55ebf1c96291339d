"""Shapes of measurements: which exact answers go through which integer maps, and what is proved of that."""
