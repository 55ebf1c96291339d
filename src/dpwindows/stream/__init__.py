"""Continual release: window counts one step at a time, for as long as a stream runs.

- `causal_maps`, `causal_counters`: the integer maps of `dpwindows.kernel.maps.integer_maps`, evaluated one position at
  a time;
- `step_design`: what is measured and decoded at each step, and how exact it will be;
- `candidates`: the causal strategies and their certified sensitivities;
- `stream_plan`: the plan of a stream, with its forecast;
- `mechanism`: exact counts of a step in, released rows out;
- `items`, `step_counts`: recencies kept up step by step, and the exact counts that follow from them;
- `handed`, `calls`: the events of one call, and which of them are counted where;
- `closing`, `records`, `schema`, `state_file`, `packing`: what is kept, and one transaction for each step;
- `stream_ledger`: what a stream and its ledger tell each other;
- `stream`: all of it together, `dpwindows.Stream`.
"""
