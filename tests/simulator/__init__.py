"""A deterministic simulator of streams, ledgers and releases on a disk that crashes, lies in pieces, and comes back.

    python -m tests.simulator --schedules 1000 --seed 7

Real processes run the real engines (DuckDB, SQLite, Arrow) on real files; what they ask of the system is seen, numbered
and broken at will by a library that is loaded before all others.

- `shim.c`, `shim`: that library, its control block, and the log it writes;
- `disk`: what was written, what was synced, and what a power failure may leave of it;
- `workload`: what a process does: create, advance, show, release;
- `schedule`: a seed turned into processes, faults, power failures, restored backups;
- `driver`: runs one schedule;
- `invariants`: what must hold after every process, whatever happened;
- `planted`: durability bugs that the simulator must find.

[docs/simulator.md](../../docs/simulator.md) tells how to use it and what it cannot see.
"""
