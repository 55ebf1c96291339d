"""Continual release: window counts one step at a time, for as long as a stream runs.

What is measured at each step, and with what noise, comes from elsewhere: `dpwindows.strategies.causal` proposes it,
`dpwindows.kernel.shapes.causal` and `dpwindows.kernel.maps.causal` encode it, `dpwindows.plan.stream_plan` forecasts
it. Here it runs:

- `stream`: all of it together, `dpwindows.Stream`; `creating`: a new stream, paid for and made once;
- `given_events`, `calls`: the events of one call, and which of them are counted where;
- `items`, `step_counts`: recencies kept up step by step, and the exact counts that follow from them;
- `mechanism`: exact counts of a step in, released rows out; `saved_mechanism`: its description, to go on with later;
- `close_step`: one transaction for each step; `gate`: the one function that rows leave through; `limits`: how many
  steps one call may close;
- `state_file`, `schema`, `records`, `named_arrays`: what is kept on disk, and in which form;
- `recovery`, `mark`: what is checked before a state is trusted again;
- `stream_ledger`: what a stream and its ledger tell each other.
"""
