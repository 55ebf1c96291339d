"""The table that agrees with itself: post-processing of released numbers, see `table`."""
