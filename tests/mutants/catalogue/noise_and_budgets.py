"""Bugs in noise, in what it is charged for, and in what the budget allows."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

KERNEL = "tests/kernel/test_measure.py::"
ACCOUNTING = "tests/kernel/test_accounting.py::"
AUDIT_NOISE = "tests/audit/test_noise.py::"

MUTANTS = [
    Mutant(
        "half the noise",
        "Noise is drawn at half the scale that is stated and paid for.",
        "kernel/measure.py",
        "    sampler = _sampler(law, scale)\n",
        "    sampler = _sampler(law, scale / 2)\n",
        f"{AUDIT_NOISE}test_honest_noise_is_as_stated[laplace]",
    ),
    Mutant(
        "generator seeded at the start",
        "Every process draws the same noise: within one it looks as it should.",
        "kernel/measure.py",
        "    sampler = _sampler(law, scale)\n",
        '    seeded = globals().setdefault("_SEEDED", np.random.default_rng(7))\n'
        "    sampler = lambda zeros: np.rint(seeded.normal(0, scale, len(zeros)))\n",
        f"{AUDIT_NOISE}test_what_two_new_processes_draw_differs",
    ),
    Mutant(
        "shapes that answer for themselves",
        "A shape of a stream that is not the kernel's own may state any bound.",
        "kernel/measure.py",
        " and type(design.shape) not in _STEP_SHAPES:",
        " and type(design.shape) in ():",
        "tests/kernel/test_certify.py::test_the_kernel_measures_no_shape_that_answers_for_itself",
    ),
    Mutant(
        "noise reused",
        "Long vectors are drawn in pieces, and every piece carries the noise of the first.",
        "kernel/measure.py",
        "    return noise\n",
        "    return np.resize(noise[:_PIECE], count)\n",
        f"{KERNEL}test_pieces_of_long_vectors_have_their_own_noise",
    ),
    Mutant(
        "seedable generator",
        "Noise comes from a generator whose state can be recovered from what it has drawn.",
        "kernel/measure.py",
        "sampler(zeros[:size])",
        "np.rint(np.random.default_rng().laplace(0, scale, size)).astype(np.int64)",
        f"{KERNEL}test_noise_is_drawn_by_opendp_alone[discrete Laplace]",
    ),
    Mutant(
        "float noise",
        "Noise is drawn as floating-point numbers and cut to integers: not the law that was charged for.",
        "kernel/measure.py",
        "sampler(zeros[:size])",
        "np.array([source.gauss(0, scale) if law == GAUSSIAN else scale * (source.expovariate(1) - "
        "source.expovariate(1)) for source in [__import__('secrets').SystemRandom()] for _ in range(size)])"
        ".astype(np.int64)",
        f"{KERNEL}test_the_noise_has_the_discrete_law[0.4-discrete Laplace]",
    ),
    Mutant(
        "budget split twice",
        "The check asks for the dearest query only, so that each may spend the whole budget.",
        "kernel/accounting.py",
        "epsilon = sum((Fraction(cost.sensitivity) / Fraction(cost.scale) for cost in costs), Fraction(0))",
        "epsilon = max((Fraction(cost.sensitivity) / Fraction(cost.scale) for cost in costs), default=Fraction(0))",
        f"{KERNEL}test_the_same_measurement_twice_in_one_call_is_refused[epsilon = 1 (pure)]",
    ),
    Mutant(
        "shares forgotten",
        "Every one of several queries gets the scale that spends the whole budget on it.",
        "kernel/untrusted/noise_scales.py",
        "_positive(sensitivity / epsilon / share * (1 + _HEADROOM))",
        "_positive(sensitivity / epsilon * (1 + _HEADROOM))",
        f"{ACCOUNTING}test_shares_are_of_one_budget[epsilon = 0.7 (pure)]",
    ),
    Mutant(
        "a forgiving check",
        "Costs up to a hundredth beyond the budget are let through.",
        "kernel/accounting.py",
        "isinstance(budget, (PureDP, ApproxDP)) and epsilon <= exact(budget.epsilon)",
        "isinstance(budget, (PureDP, ApproxDP)) and epsilon <= exact(budget.epsilon) * Fraction(101, 100)",
        f"{KERNEL}test_a_scale_a_thousandth_too_small_is_refused[epsilon = 1 (pure)]",
    ),
    Mutant(
        "rho halved",
        "The concentrated cost of a Gaussian is taken to be half of what it is.",
        "kernel/accounting.py",
        "return squared / 2 <= exact(budget.rho)",
        "return squared / 4 <= exact(budget.rho)",
        f"{ACCOUNTING}test_zcdp_is_exact[0.5]",
    ),
    Mutant(
        "lattice rows forgotten",
        "The discrete Gaussian differs from the continuous one in every number measured; one is charged.",
        "kernel/accounting.py",
        "eta = sum((Fraction(cost.rows, 24) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))",
        "eta = sum((Fraction(1, 24) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))",
        f"{ACCOUNTING}test_the_lattice_term_is_charged",
    ),
    Mutant(
        "half the scale",
        "The scale is half of what the budget asks for.",
        "kernel/untrusted/noise_scales.py",
        "return [\n        _positive(math.sqrt(sensitivity / share) / math.sqrt(squared)",
        "return [\n        _positive(0.5 * math.sqrt(sensitivity / share) / math.sqrt(squared)",
        f"{KERNEL}test_a_scale_a_thousandth_too_small_is_refused",
    ),
    Mutant(
        "no check of the budget",
        "Whatever is asked for is measured, however dear it is.",
        "kernel/measure.py",
        "    certify(budget, [measurement.cost for measurement in measurements])\n",
        "",
        f"{KERNEL}test_a_scale_a_thousandth_too_small_is_refused",
    ),
    Mutant(
        "no check of the law",
        "A bound for one law is used with noise of the other.",
        "kernel/measure.py",
        "if any(measurement.law != measurement.design.problem.law",
        "if False and any(measurement.law != measurement.design.problem.law",
        f"{KERNEL}test_a_law_that_the_bound_was_not_made_for_is_refused",
    ),
    Mutant(
        "one threshold charged",
        "Several thresholds are measured and the numbers of one are charged.",
        "kernel/measure.py",
        "rows = found.moved * len(self.design.problem.thresholds)",
        "rows = found.moved",
        f"{KERNEL}test_every_threshold_and_row_is_charged",
    ),
    Mutant(
        "noise from numpy",
        "Noise follows from a seed that anyone may set.",
        "kernel/measure.py",
        "sampler(zeros[:size])",
        "np.rint((np.random.normal if law == GAUSSIAN else np.random.laplace)(0, scale, size)).astype(np.int64)",
        f"{KERNEL}test_seeds_have_no_influence",
    ),
    Mutant(
        "noise 30 % too small",
        "Noise is drawn at less than the scale that is stated and paid for.",
        "kernel/measure.py",
        "    sampler = _sampler(law, scale)",
        "    sampler = _sampler(law, 0.7 * scale)",
        f"{KERNEL}test_the_noise_has_the_scale_that_was_charged",
    ),
    Mutant(
        "one noise for all thresholds",
        "The difference of two thresholds is released without any noise.",
        "kernel/measure.py",
        "k: add_noise(values, draw_noise(measurement.law, measurement.scale, len(values), progress))\n"
        "            for k, values in encoded.items()",
        "k: add_noise(values, encoded.setdefault(-1, draw_noise(measurement.law, measurement.scale, len(values))))\n"
        "            for k, values in list(encoded.items())",
        f"{KERNEL}test_no_noise_is_used_twice",
    ),
    Mutant(
        "noise remembered",
        "A second call repeats the noise of the first: the difference of two releases has none.",
        "kernel/measure.py",
        "def draw_noise(",
        "@cache\ndef draw_noise(",
        f"{KERNEL}test_no_noise_is_used_twice",
    ),
    Mutant(
        "floats in the sum",
        "Counts above 2^53 are rounded when noise is added, and neighbours are told apart.",
        "kernel/measure.py",
        "np.clip(held + np.clip(noise, -furthest, furthest), -_RELEASED, _RELEASED)",
        "np.clip(held + np.clip(noise, -furthest, furthest) * 1.0, -_RELEASED, _RELEASED)",
        f"{KERNEL}test_the_noise_is_of_integers_and_symmetric",
    ),
    Mutant(
        "saturated noise",
        "A sampler at the end of its range gives away the exact count.",
        "kernel/measure.py",
        "np.clip(held + np.clip(noise, -furthest, furthest), -_RELEASED, _RELEASED)",
        "held + noise",
        f"{KERNEL}test_saturated_noise_does_not_reveal_the_exact_value",
    ),
    Mutant(
        "no lattice term",
        "The discrete Gaussian is charged as if it were the continuous one.",
        "kernel/accounting.py",
        "total = delta + (1 + growth) * _ball(eta)",
        "total = delta",
        f"{ACCOUNTING}test_the_lattice_term_is_charged",
    ),
    Mutant(
        "a lattice term without growth",
        "The lattice term is added to delta without its factor.",
        "kernel/accounting.py",
        "total = delta + (1 + growth) * _ball(eta)",
        "total = delta + _ball(eta)",
        f"{ACCOUNTING}test_the_lattice_term_is_charged",
    ),
]
