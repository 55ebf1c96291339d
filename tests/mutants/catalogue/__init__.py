"""Planted privacy bugs: a record for each, in the file of the part of the road that it breaks."""

from tests.mutants.catalogue import bounds, ledger_and_streams, noise_and_budgets, reading_and_writing, sampler

MUTANTS = [
    *reading_and_writing.MUTANTS,
    *bounds.MUTANTS,
    *noise_and_budgets.MUTANTS,
    *sampler.MUTANTS,
    *ledger_and_streams.MUTANTS,
]
