"""The theory as code: hard instances behind the lower bounds, the bounds of Table 1, and the table they make.

- `hard_instance`: what a construction returns, a log with the windows to ask and the way back to a hard problem;
- `constructions`: the constructions, one for every lower bound of the paper, and one that is ours;
- `points`: the other direction, from a log to the point sets whose range counts are its window counts;
- `bounds`: upper and lower bounds as functions, with their conditions and sources;
- `packing`: lower bounds for pure budgets with all constants;
- `reductions`: every construction run on a small instance, with the bound that follows;
- `table`: Table 1 for given parameters, in counts.

*The paper* is Ghazi, Kumar, Manurangsi, Nelson, Private Counting of Distinct and k-Occurring Items in Time Windows
(ITCS 2023, arXiv 2211.11718). Nothing here is needed to make a release.
"""
