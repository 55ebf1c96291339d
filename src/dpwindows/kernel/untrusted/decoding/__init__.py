"""How what was measured is read back, and with which error: one file for each file of `dpwindows.kernel.maps`.

Each class here is the base of a map, and gives it `decode`, `variance` and `fourth_moment`. Nothing in this folder is
trusted: it sees noisy numbers only, so a mistake costs accuracy and never privacy.
"""
