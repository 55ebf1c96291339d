"""Certified sensitivities: what one neighbour can change and what that costs, each bound beside its proof."""
