"""Continual release: window counts one step at a time, for as long as a stream runs.

- `mechanism`: exact counts of a step in, released rows out;
- `items`, `step_counts`: recencies kept up step by step, and the exact counts that follow from them;
- `given_events`, `calls`: the events of one call, and which of them are counted where;
- `creating`, `recovery`: a state made once, and opened again whatever happened to it;
- `close_step`, `records`, `schema`, `state_file`: what is kept, and one transaction for each step;
- `gate`, `mark`: rows leave once they are on record and on disk;
- `stream_ledger`: what a stream and its ledger tell each other;
- `stream`: all of it together, `dpwindows.Stream`.
"""
