"""The only code that sees data: events are read, reduced to recency, and counted exactly."""
