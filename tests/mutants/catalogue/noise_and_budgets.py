"""Bugs in noise, in what it is charged for, and in what the budget allows."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

KERNEL = "tests/kernel/test_measure.py::"
ACCOUNTING = "tests/kernel/test_accounting.py::"
JOINT = "tests/kernel/test_joint_noise.py::"
AUDIT_NOISE = "tests/audit/test_noise.py::"
INTERVALS = "tests/plan/test_intervals.py::"

MUTANTS = [
    Mutant(
        "Noise is drawn at half the scale that is stated and paid for.",
        "kernel/measure.py",
        "    draw = _SAMPLERS[by](law, scale, count)\n",
        "    draw = _SAMPLERS[by](law, scale / 2, count)\n",
        f"{AUDIT_NOISE}test_honest_noise_is_as_stated[laplace]",
    ),
    Mutant(
        "Every process draws the same noise: within one it looks as it should.",
        "kernel/measure.py",
        "    draw = _SAMPLERS[by](law, scale, count)\n",
        '    seeded = globals().setdefault("_SEEDED", np.random.default_rng(7))\n'
        "    draw = lambda size: np.rint(seeded.normal(0, scale, size))\n",
        f"{KERNEL}test_what_two_new_processes_draw_differs[discrete Gaussian]",
    ),
    Mutant(
        "Noise in one direction is drawn with the radius of as many numbers as there are, and not of one more.",
        "kernel/joint_noise.py",
        "(1, count + 1) if law == RANGE",
        "(1, count) if law == RANGE",
        f"{JOINT}test_draws_are_of_the_law_and_of_no_scale_near_it[discrete range-2-0.8]",
    ),
    Mutant(
        "Noise in a cube is drawn with the radius of one more number than there are.",
        "kernel/joint_noise.py",
        "else (2, count)",
        "else (2, count + 1)",
        f"{JOINT}test_draws_are_of_the_law_and_of_no_scale_near_it[discrete cube-2-0.8]",
    ),
    Mutant(
        "Noise that is drawn for a whole vector costs a little more than is paid for it.",
        "kernel/joint_noise.py",
        "-floor_of(-scaled)",
        "floor_of(scaled)",
        f"{JOINT}test_the_ratio_is_rounded_to_the_private_side",
    ),
    Mutant(
        "An item that changes moves one count up and another down, and pays for one of them.",
        "kernel/families/joint.py",
        '"item-in-one-direction", _SERIES, ItemAddRemove,',
        '"item-in-one-direction", _SERIES, ITEM_UNITS,',
        "tests/kernel/families/test_joint.py::test_an_item_that_changes_moves_the_range_twice_as_far",
    ),
    Mutant(
        "A stream draws noise for one step at a time that is paid for all steps at once.",
        "kernel/measure.py",
        "    if any(made.law in JOINT for made in measurements):\n",
        "    if not measurements:\n",
        f"{JOINT}test_it_is_drawn_for_each_vector_apart_and_never_step_by_step",
    ),
    Mutant(
        "A shape of a stream that is not the kernel's own may state any bound.",
        "kernel/measure.py",
        "((one, (Design, StepDesign)), (one.shape, shapes))",
        "((one, (Design, StepDesign)),)",
        "tests/kernel/test_measure.py::test_nobody_can_state_a_bound",
    ),
    Mutant(
        "Long vectors are drawn in pieces, and every piece carries the noise of the first.",
        "kernel/measure.py",
        "    return drawn\n",
        "    return np.resize(drawn[:_PIECE], count)\n",
        f"{KERNEL}test_pieces_of_long_vectors_have_their_own_noise",
    ),
    Mutant(
        "Noise comes from a generator whose state can be recovered from what it has drawn.",
        "kernel/measure.py",
        "draw(size)",
        "np.rint(np.random.default_rng().laplace(0, scale, size)).astype(np.int64)",
        f"{KERNEL}test_noise_is_drawn_by_no_seedable_source[discrete Laplace-exact]",
    ),
    Mutant(
        "Noise is drawn as floating-point numbers and cut to integers: not the law that was charged for.",
        "kernel/measure.py",
        "draw(size)",
        "np.array([source.gauss(0, scale) if law == GAUSSIAN else scale * (source.expovariate(1) - "
        "source.expovariate(1)) for source in [__import__('secrets').SystemRandom()] for _ in range(size)])"
        ".astype(np.int64)",
        f"{KERNEL}test_the_noise_has_the_discrete_law[0.5-discrete Laplace-exact]",
    ),
    Mutant(
        "Noise is drawn at a whole scale: of large ones nothing shows.",
        "kernel/noise.py",
        "exact = Fraction(scale)",
        "exact = Fraction(max(1, round(scale)))",
        f"{KERNEL}test_the_noise_has_the_discrete_law[1.7-discrete Laplace-exact]",
    ),
    Mutant(
        "A fraction is taken for what one neighbour moves of whole numbers.",
        "kernel/accounting.py",
        "type(bound) is int and bound >= 0",
        "bound >= 0",
        f"{ACCOUNTING}test_costs_are_whole_numbers[0.5-1-None]",
    ),
    Mutant(
        "The weight of the paper's trees may be a fraction, which what is measured is cut down to.",
        "strategies/paper/shapes.py",
        " and type(self.tree.weight) is int and self.tree.weight >= 1",
        "",
        "tests/strategies/test_paper.py::test_weights_that_are_not_whole_are_not_certified[0.0009765625]",
    ),
    Mutant(
        "The check asks for the dearest query only, so that each may spend the whole budget.",
        "kernel/accounting.py",
        "epsilon = sum((Fraction(cost.sensitivity) / Fraction(cost.scale) for cost in costs), Fraction(0))",
        "epsilon = max((Fraction(cost.sensitivity) / Fraction(cost.scale) for cost in costs), default=Fraction(0))",
        f"{KERNEL}test_the_same_measurement_twice_in_one_call_is_refused[epsilon = 1 (pure)]",
    ),
    Mutant(
        "Every one of several queries gets the scale that spends the whole budget on it.",
        "strategies/search/noise_scales.py",
        "_positive(sensitivity / epsilon / share * (1 + _HEADROOM))",
        "_positive(sensitivity / epsilon * (1 + _HEADROOM))",
        f"{ACCOUNTING}test_shares_are_of_one_budget[epsilon = 0.7 (pure)]",
    ),
    Mutant(
        "Costs up to a hundredth beyond the budget are let through.",
        "kernel/accounting.py",
        "isinstance(budget, (PureDP, ApproxDP)) and epsilon <= exact(budget.epsilon)",
        "isinstance(budget, (PureDP, ApproxDP)) and epsilon <= exact(budget.epsilon) * Fraction(101, 100)",
        f"{KERNEL}test_a_scale_a_thousandth_too_small_is_refused[epsilon = 1 (pure)]",
    ),
    Mutant(
        "The concentrated cost of a Gaussian is taken to be half of what it is.",
        "kernel/accounting.py",
        "return squared / 2 <= exact(budget.rho)",
        "return squared / 4 <= exact(budget.rho)",
        f"{ACCOUNTING}test_zcdp_is_exact[0.5]",
    ),
    Mutant(
        "The discrete Gaussian differs from the continuous one in every number measured; one is charged.",
        "kernel/accounting.py",
        "eta = sum((Fraction(cost.rows, 24) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))",
        "eta = sum((Fraction(1, 24) / Fraction(cost.scale) ** 2 for cost in costs), Fraction(0))",
        f"{ACCOUNTING}test_the_lattice_term_is_charged",
    ),
    Mutant(
        "The scale is half of what the budget asks for.",
        "strategies/search/noise_scales.py",
        "return [\n        _positive(math.sqrt(sensitivity / share) / math.sqrt(squared)",
        "return [\n        _positive(0.5 * math.sqrt(sensitivity / share) / math.sqrt(squared)",
        f"{KERNEL}test_a_scale_a_thousandth_too_small_is_refused",
    ),
    Mutant(
        "Whatever is asked for is measured, however dear it is.",
        "kernel/measure.py",
        "    certify(budget, [measurement.cost for measurement in measurements])\n",
        "",
        f"{KERNEL}test_a_scale_a_thousandth_too_small_is_refused",
    ),
    Mutant(
        "A bound for one law is used with noise of the other.",
        "kernel/measure.py",
        "if any(measurement.law != measurement.design.problem.law",
        "if False and any(measurement.law != measurement.design.problem.law",
        f"{KERNEL}test_a_law_that_the_bound_was_not_made_for_is_refused",
    ),
    Mutant(
        "Several thresholds are measured and the numbers of one are charged.",
        "kernel/measure.py",
        "rows = certificate.moved * len(self.design.problem.thresholds)",
        "rows = certificate.moved",
        f"{KERNEL}test_every_threshold_and_every_row_that_a_neighbour_changes_is_charged",
    ),
    Mutant(
        "Noise follows from a seed that anyone may set.",
        "kernel/measure.py",
        "draw(size)",
        "np.rint((np.random.normal if law == GAUSSIAN else np.random.laplace)(0, scale, size)).astype(np.int64)",
        f"{KERNEL}test_seeds_have_no_influence",
    ),
    Mutant(
        "Noise is drawn at less than the scale that is stated and paid for.",
        "kernel/measure.py",
        "    draw = _SAMPLERS[by](law, scale, count)",
        "    draw = _SAMPLERS[by](law, 0.7 * scale, count)",
        f"{KERNEL}test_the_noise_has_the_scale_that_was_charged",
    ),
    Mutant(
        "The difference of two thresholds is released without any noise.",
        "kernel/measure.py",
        "k: add_noise(values, draw_noise(made.law, made.scale, len(values), progress, len(made.cells), by))\n"
        "            for k, values in encoded.items()",
        "k: add_noise(values, encoded.setdefault(-1, draw_noise(made.law, made.scale, len(values))))\n"
        "            for k, values in list(encoded.items())",
        f"{KERNEL}test_no_noise_is_used_twice",
    ),
    Mutant(
        "A second call repeats the noise of the first: the difference of two releases has none.",
        "kernel/measure.py",
        "def draw_noise(",
        "@__import__('functools').cache\ndef draw_noise(",
        f"{KERNEL}test_no_noise_is_used_twice",
    ),
    Mutant(
        "Counts above 2^53 are rounded when noise is added, and neighbours are told apart.",
        "kernel/measure.py",
        "noisy += np.clip(exact, -_EXACT, _EXACT).astype(np.int64, copy=False)",
        "noisy = (noisy + np.clip(exact, -_EXACT, _EXACT) * 1.0).astype(np.int64)",
        f"{KERNEL}test_adding_noise_is_clipping_in_exact_integers",
    ),
    Mutant(
        "A sampler at the end of its range gives away the exact count.",
        "kernel/measure.py",
        "np.clip(noisy, -_RELEASED, _RELEASED, out=noisy)",
        "np.clip(exact, -_EXACT, _EXACT).astype(np.int64) + noise",
        f"{KERNEL}test_saturated_noise_does_not_reveal_the_exact_value",
    ),
    Mutant(
        "The discrete Gaussian is charged as if it were the continuous one.",
        "kernel/accounting.py",
        "total = delta + (1 + growth) * ball_of(eta)",
        "total = delta",
        f"{ACCOUNTING}test_the_lattice_term_is_charged",
    ),
    Mutant(
        "The lattice term is added to delta without its factor.",
        "kernel/accounting.py",
        "total = delta + (1 + growth) * ball_of(eta)",
        "total = delta + ball_of(eta)",
        f"{ACCOUNTING}test_the_lattice_term_is_charged",
    ),
    Mutant(
        "Intervals of single numbers leave out as much on either side as they may leave out on both.",
        "reading/lattice_noise.py",
        "    tails = 2 * np.cumsum(probabilities[:0:-1])[::-1]\n",
        "    tails = np.cumsum(probabilities[:0:-1])[::-1]\n",
        f"{INTERVALS}test_months_of_a_release_by_event[0.5]",
    ),
    Mutant(
        "Sums of noise on whole numbers have the half widths of the continuous noise beside it.",
        "reading/lattice_noise.py",
        "_SHIFTS = ((0.0, 1 / 2), ",
        "_SHIFTS = ((0.0, 0.0), ",
        f"{INTERVALS}test_sums_by_their_moments[discrete Laplace-0.8]",
    ),
    Mutant(
        "A stream that ends is measured after its last step, which its budget does not pay for.",
        "kernel/measure.py",
        " or (design.horizon is not None and step > design.horizon)",
        "",
        "tests/kernel/test_measure.py::test_a_step_is_measured_within_the_budget_of_the_stream_and_whole",
    ),
]
