"""Opening a log: what a path, an address or an object stands for, and its rows, each read by itself."""
