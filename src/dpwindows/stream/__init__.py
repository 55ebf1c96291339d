"""Continual release: window counts one step at a time, for as long as a stream runs.

- `stream`: all of it together, `dpwindows.Stream`;
- `given_events`, `calls`: the events of one call, where they are counted, what is said of them;
- `recencies`: what is kept of every item, in parts that are written once, and the queries that keep it;
- `place`, `places`: what is asked of a place for parts, and how it is named and opened; `parts`, `spark_parts` and
  `database_parts` are the folder beside the state, a folder that Spark writes, and tables of PostgreSQL;
- `step_counts`, `mechanism`: the exact counts that follow, and exact counts in, released rows out;
- `closing`: one step, all of it at once;
- `store`, `records`: the state, one SQLite file, and what it records: where state, position and token stand, and why;
- `publishing`, `mark`: rows leave once they are on record and on disk; what a stream and its ledger tell each other;
- `creating`: a state made once, and paid for once.
"""
