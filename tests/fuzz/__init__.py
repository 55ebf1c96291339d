"""Structure-aware fuzzing of everything that dpwindows reads: events, releases, states, ledgers, command lines.

`inputs` makes a case from a Hypothesis draw: something valid, then changed in a few places. `worker` runs cases through
the real command line in a process of its own, whose memory and time are bounded. `test_fuzz` says what must hold of all
of them. A new reader is one function in `inputs` and its name in `READERS`.

A short run is part of the quick tests; `make fuzz` runs thousands (FUZZ_INPUTS=5000).
"""
