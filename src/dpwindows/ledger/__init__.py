"""The ledger: one total budget a dataset, shared by everything released from it."""
