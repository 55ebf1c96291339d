"""Searches for good strategies, and the limits that no strategy can pass. Nothing here is trusted."""
