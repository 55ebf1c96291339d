"""Planted privacy bugs: one exact change of one source file each, and the ordinary test that must notice it.

A change is a piece of source that must occur exactly once, and what takes its place; when the source moves on, the
mutant fails loudly and must move with it. `tests/kernel/test_measure.py` holds more of the kernel's own.
"""

from __future__ import annotations

from dataclasses import dataclass

OFFSET = "tests/strategies/test_offset_filter.py::"
SENSITIVITY = "tests/kernel/bounds/test_sensitivity.py::"
PAPER = "tests/strategies/test_paper.py::"
KERNEL = "tests/kernel/test_measure.py::"
PLAN = "tests/plan/test_plan.py::"
ACCOUNTING = "tests/kernel/test_accounting.py::"
LEDGER = "tests/ledger/test_ledger.py::"
PARALLEL = "tests/ledger/test_parallel.py::"
STREAM = "tests/stream/test_stream.py::"
FAULTS = "tests/stream/test_faults.py::"
AUDIT_NOISE = "tests/audit/test_noise.py::"
AUDIT_ENCODING = "tests/audit/test_encoding.py::"
AUDIT_REPLAY = "tests/audit/test_replay.py::"
GATE = "tests/stream/test_gate.py::"
CREATE = "tests/stream/test_create.py::"
DURABLE = "tests/test_durable.py::"
RELEASE_FILES = "tests/release/test_files.py::"
OUTPUTS = "tests/end_to_end/test_outputs.py::"
TYPED = "tests/count/engines/test_typed_columns.py::test_one_event_more_moves_counts_by_one_or_is_refused"
LOCALITY = "tests/count/engines/test_row_locality.py::"
CELLS = SENSITIVITY + "test_every_strategy_in_every_cell"


@dataclass(frozen=True)
class Mutant:
    """A change of the source, what it breaks, and the one test that must fail for it."""

    name: str
    breaks: str
    file: str
    before: str
    after: str
    test: str

    def __str__(self) -> str:
        return self.name

    def apply(self, source: str) -> str:
        """The source with the change made.

        Raises:
            AssertionError: the source has changed, so that the mutant must be changed with it.
        """
        found = source.count(self.before)
        assert found == 1, f"{self.file} holds what the mutant {self.name!r} changes {found} times: change the mutant"
        return source.replace(self.before, self.after)


MUTANTS = [
    Mutant(
        "period cut at the forecast",
        "The bound of a stream for items within a period is for the forecast's steps, however long the period is.",
        "kernel/certify.py",
        "return period_sensitivity.affected_ends(length, period, steps)",
        "return period_sensitivity.affected_ends(length, period, 4096)",
        "tests/stream/test_mechanism.py::test_a_period_longer_than_the_forecast_is_charged_whole[pure-unlimited]",
    ),
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
        "large counts rounded",
        "Counts above 2,000 are rounded to tens before they are measured: a neighbour moves them by ten.",
        "kernel/shapes/series.py",
        "        return self.map.encode(series(self.problem.window, answers, k))\n",
        "        exact = series(self.problem.window, answers, k)\n"
        "        return self.map.encode(exact - (exact > 2000) * (exact % 10))\n",
        f"{AUDIT_ENCODING}test_every_cell_applies_one_matrix[pure-event]",
    ),
    Mutant(
        "estimates held to what is possible",
        "No estimate may exceed the items that there are, which are counted exactly and without noise.",
        "release/run.py",
        "        _estimate(asked, estimates)\n",
        "        np.minimum(_estimate(asked, estimates), answers.cumulative(asked.k)[-1])\n",
        f"{AUDIT_REPLAY}test_neighbours_in_every_cell_differ_in_nothing_but_noise[pure-item-add-remove]",
    ),
    Mutant(
        "off-by-one sensitivity",
        "A rolling window of W steps holds an occurrence at W ends; it is charged for one less.",
        "kernel/certify.py",
        "return length if steps is None else min(length, steps)\n        case Cumulative()",
        "return max(1, length - 1)\n        case Cumulative()",
        f"{CELLS}[3-(1,)]",
    ),
    Mutant(
        "filters that are cut short",
        "A filter without its last taps is charged like the whole one, though intervals cost more through it.",
        "kernel/certify.py",
        " and len(taps) >= min(len(longest), places)",
        "",
        "tests/kernel/test_certify.py::test_what_moves_further_than_its_bound_is_refused[starts cut short]",
    ),
    Mutant(
        "levels that cancel",
        "A level of a tree with a negative weight takes off what the others are charged.",
        "kernel/certify.py",
        "        if min(sizes) < 1:\n",
        "        if max(sizes) < 1:\n",
        "tests/kernel/test_certify.py::test_what_moves_further_than_its_bound_is_refused[a tree whose levels cancel]",
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
        "group factor dropped",
        "A neighbour moves m points of a range tree; the noise is that of one.",
        "kernel/paper/bounds.py",
        "return touched.trees * sum(touched.points) * touched.nodes_per_point * weight",
        "return touched.trees * len(touched.points) * touched.nodes_per_point * weight",
        f"{PAPER}test_no_neighbour_exceeds_the_certified_bounds[cumulative-event-(2,)]",
    ),
    Mutant(
        "noise reused",
        "Long vectors are drawn in pieces, and every piece carries the noise of the first.",
        "kernel/measure.py",
        "        piece = np.array(sampler([0] * min(_PIECE, count - start)), dtype=np.int64)\n",
        "        piece = np.array(sampler([0] * min(_PIECE, count - start)), dtype=np.int64)\n"
        "        piece = pieces[0][: len(piece)] if pieces else piece\n",
        f"{KERNEL}test_pieces_of_long_vectors_have_their_own_noise",
    ),
    Mutant(
        "seedable generator",
        "Noise comes from a generator whose state can be recovered from what it has drawn.",
        "kernel/measure.py",
        "piece = np.array(sampler([0] * min(_PIECE, count - start)), dtype=np.int64)",
        "piece = np.rint(np.random.default_rng().laplace(0, scale, min(_PIECE, count - start))).astype(np.int64)",
        f"{KERNEL}test_noise_is_drawn_by_opendp_alone[discrete Laplace]",
    ),
    Mutant(
        "float noise",
        "Noise is drawn as floating-point numbers and cut to integers: not the law that was charged for.",
        "kernel/measure.py",
        "piece = np.array(sampler([0] * min(_PIECE, count - start)), dtype=np.int64)",
        "import secrets\n"
        "        source = secrets.SystemRandom()\n"
        "        piece = np.array([source.gauss(0, scale) if law == GAUSSIAN else scale * (source.expovariate(1) - "
        "source.expovariate(1)) for _ in range(min(_PIECE, count - start))], dtype=np.float64).astype(np.int64)",
        f"{KERNEL}test_the_noise_has_the_discrete_law[0.4-discrete Laplace]",
    ),
    Mutant(
        "wrong unit",
        "Whatever unit is asked for, noise is calibrated to one event.",
        "plan/plan.py",
        "            unit=self.unit,\n            law=law,",
        "            unit=__import__('dpwindows.ask.privacy').privacy.EventLevel(),\n            law=law,",
        f"{PLAN}test_units_cost_what_they_promise",
    ),
    Mutant(
        "k ignored",
        "One occurrence changes at least k on k rectangles; it is charged for one.",
        "kernel/bounds/sensitivity.py",
        "return 4 * sum(thresholds) * blocks_met * start_total * end_total",
        "return 4 * len(thresholds) * blocks_met * start_total * end_total",
        f"{CELLS}[3-(2,)]",
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
        "kernel/accounting.py",
        "_positive(sensitivity / epsilon / share * (1 + _HEADROOM))",
        "_positive(sensitivity / epsilon * (1 + _HEADROOM))",
        f"{ACCOUNTING}test_shares_are_of_one_budget[epsilon = 0.7 (pure)]",
    ),
    Mutant(
        "range read from the data",
        "A release ends with the last step in which something happened.",
        "release/run.py",
        "return Release(pa.concat_tables(tables), described | paid)",
        "import pyarrow.compute as pc\n"
        "        last = max((int(change.step.max(initial=0)) for change in answers._changes.values()), default=0)\n"
        "        return Release(pa.concat_tables(tables).filter(pc.field('last_step') <= last), described | paid)",
        "tests/end_to_end/test_release.py::test_an_empty_log_is_released_as_noise",
    ),
    Mutant(
        "counts in the metadata",
        "A release says how often anything changed in the log.",
        "release/run.py",
        "return Release(pa.concat_tables(tables), described | paid)",
        "paid = paid | {'changes': sum(len(change.step) for change in answers._changes.values())}\n"
        "        return Release(pa.concat_tables(tables), described | paid)",
        "tests/end_to_end/test_release.py::test_metadata_depends_on_the_plan_alone",
    ),
    Mutant(
        "the paper's delta at small epsilon",
        "The printed delta of one point does not follow from group privacy.",
        "strategies/paper/composition.py",
        "return delta * math.exp(_log_expm1(epsilon) - _log_expm1(points * epsilon))",
        "return delta / (4 * epsilon * points * points)",
        f"{PAPER}test_errors_3_and_11_group_privacy_of_delta[1-0.05]",
    ),
    Mutant(
        "the paper's cumulative factor 2",
        "An occurrence moves an item's point: two changes, of which the printed proof counts one.",
        "kernel/paper/bounds.py",
        "return 1 if isinstance(unit, ItemAddRemove) else 2",
        "return 1",
        f"{PAPER}test_error_4_a_moved_point_is_two_changes",
    ),
    Mutant(
        "exactly k under an at-least bound",
        "Exactly k measures two thresholds; it is charged for one.",
        "kernel/bounds/pattern_sensitivity.py",
        "    if len(thresholds) == 1:\n        bounds = [recent_bound(lags, thresholds[0]",
        "    if thresholds:\n        bounds = [recent_bound(lags, thresholds[0]",
        f"{CELLS}[3-(1, 2)]",
    ),
    Mutant(
        "a clipped band under the rectangle bound",
        "Windows that are too long are cut out of the block: what one event changes is no rectangle any more.",
        "kernel/shapes/blocks.py",
        "exact = answers.windows(k, block.first, block.starts, block.first, block.ends)[:, ::-1]",
        "exact = np.tril(answers.windows(k, block.first, block.starts, block.first, block.ends), "
        "longest_window(self.problem.window, self.problem.steps) - 1)[:, ::-1]",
        f"{CELLS}[3-(1,)]",
    ),
    Mutant(
        "mixed signs under a one-sign bound",
        "An item changed within any span is charged like one event: few runs of one sign.",
        "kernel/bounds/pattern_sensitivity.py",
        "    if span == 1:\n        return sum(rolling_patterns_event_l2(",
        "    if span >= 1:\n        return sum(rolling_patterns_event_l2(",
        f"{CELLS}[3-(1,)]",
    ),
    Mutant(
        "a changed item under the bound of an added one",
        "Two staircases are charged as one.",
        "kernel/certify.py",
        "lines, formal = staircases.lines_of(blocks), isinstance(problem.unit, ItemLevel)",
        "lines, formal = staircases.lines_of(blocks), False",
        f"{CELLS}[4-(1,)]",
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
        "replay with fresh noise",
        "The same request on the same data is drawn again: two releases average out what one hides.",
        "release/once.py",
        "found = ledger.stored(request, fingerprint)",
        "found = None",
        f"{LEDGER}test_the_same_request_on_the_same_data_returns_the_stored_release",
    ),
    Mutant(
        "a copied state goes on",
        "A stream restored from a backup publishes a step again, with fresh noise.",
        "ledger/ledger.py",
        "            if found != known:\n                raise StateBehindLedgerError(",
        "            if found.step > known.step + 1_000_000:\n                raise StateBehindLedgerError(",
        f"{LEDGER}test_a_stream_advances_by_its_tokens_and_nothing_else",
    ),
    Mutant(
        "spending without a check",
        "The ledger records whatever is asked, beyond its total too.",
        "ledger/ledger.py",
        "            book.require_room(request)\n            number = record(",
        "            number = record(",
        f"{LEDGER}test_a_refusal_names_total_spent_asked_and_left",
    ),
    Mutant(
        "items in disjoint ranges taken to be disjoint",
        "One item's occurrences lie in any number of ranges, so releases about it add up wherever they are.",
        "ledger/request.py",
        '        return span.widened(periods * place["longest"] + slack)\n    return Span()',
        '        return span.widened(periods * place["longest"] + slack)\n    return span',
        f"{PARALLEL}test_items_count_everywhere_and_streams_for_ever",
    ),
    Mutant(
        "a closed step with other events",
        "A step handed over again with other events is taken for the same, and its stored rows pass for theirs.",
        "stream/calls.py",
        "        if handed.of(step) != recorded(step):\n            raise _different(name(step))\n",
        "        pass\n",
        "tests/stream/test_repeats.py::test_a_step_is_released_once",
    ),
    Mutant(
        "a step drawn again",
        "A call that is repeated closes its steps anew, with fresh noise.",
        "stream/stream.py",
        "        if task.finished:\n            return\n",
        "        task = task._replace(closed=task.first - 1)\n",
        "tests/stream/test_repeats.py::test_a_step_is_released_once",
    ),
    Mutant(
        "rows handed out before they are on record",
        "Copies of a state all publish the next step, each with its own noise: the noise averages out.",
        "stream/gate.py",
        "        self.clear()\n        return records.read_released(",
        "        return records.read_released(",
        f"{GATE}test_twelve_copies_of_a_state_give_one_noise",
    ),
    Mutant(
        "rows handed out that only the log holds",
        "A log that is cut or deleted takes a published step with it, which is drawn again.",
        "stream/gate.py",
        "        self._state.settle()\n        closed",
        "        closed",
        f"{GATE}test_no_step_that_was_published_is_lost_with_the_log",
    ),
    Mutant(
        "a mark that nobody looks at",
        "A state that was put back to an earlier one draws published steps again.",
        "stream/gate.py",
        "        if not covers(self._state, self._creation, marked):",
        "        if marked is not None and marked.step < 0:",
        f"{GATE}test_a_state_that_was_rolled_back_where_it_lies_is_refused",
    ),
    Mutant(
        "a mark that is never raised",
        "Nothing tells that a state was put back.",
        "stream/gate.py",
        "        if marked != reached:",
        "        if marked is None:",
        f"{GATE}test_a_state_that_was_rolled_back_where_it_lies_is_refused",
    ),
    Mutant(
        "recovery from what is not on disk",
        "What a killed process left in the system's memory is published, and lost when the power fails.",
        "stream/state_file.py",
        "            _require_database(self.path)\n            self._sync()\n",
        "            _require_database(self.path)\n",
        f"{GATE}test_what_recovery_reads_is_on_disk_before_it_is_read",
    ),
    Mutant(
        "a torn log given up unseen",
        "A log that may hold a published step is removed, and the step is drawn again.",
        "stream/recovery.py",
        "    if marked is None:\n        raise torn\n",
        "    if marked is None:\n        logs_left(path)[0].unlink()\n        return\n",
        f"{GATE}test_a_torn_log_is_not_given_up_where_it_may_hold_a_published_step",
    ),
    Mutant(
        "one id for two noises",
        "A step drawn again passes for the one that was published.",
        "stream/records.py",
        "    if not rows or len(rows[-1][1]) < 2 * TOKEN_BYTES:",
        "    if not rows or rows[-1][1]:",
        f"{GATE}test_another_noise_has_another_release_id",
    ),
    Mutant(
        "a stream paid for by two",
        "Two processes that make one stream both spend its budget, and one of them says that nothing was spent.",
        "stream/creating.py",
        "    with claimed(path):",
        "    if path:",
        f"{CREATE}test_whoever_comes_while_a_stream_is_paid_for_pays_nothing",
    ),
    Mutant(
        "a stream paid for twice",
        "A creation that failed after it was paid for is paid for again when it is repeated.",
        "stream/creating.py",
        "        draft = _paid_draft(path, creation, arrays, is_paid)",
        "        draft = None",
        f"{CREATE}test_what_was_paid_for_and_not_named_is_named_by_the_next_call",
    ),
    Mutant(
        "a step in several transactions",
        "After a crash counts, noise and rows are of different steps.",
        "stream/close_step.py",
        "with state.transaction() as connection:\n        counts",
        "with state.guarded() as connection:\n        counts",
        f"{FAULTS}test_a_failed_commit_is_found_out_afterwards",
    ),
    Mutant(
        "late events moved out of their period",
        "Occurrences of an item in L consecutive steps are counted further apart than L steps.",
        "stream/calls.py",
        'if known == "move" and isinstance(unit, ItemPerPeriod):',
        'if known == "move" and unit is ItemPerPeriod:',
        f"{STREAM}test_moving_is_refused_within_a_period",
    ),
    Mutant(
        "a collation that is handed on",
        "Texts that differ in case are one item in one step and two in another: one event moves the answers of both.",
        "count/engines/duckdb_sources.py",
        """AS VARCHAR) COLLATE "binary"'""",
        "AS VARCHAR)'",
        f"{STREAM}test_items_of_a_column_with_a_collation_are_told_apart[NOCASE]",
    ),
    Mutant(
        "a checksum of the rows alone",
        "An epsilon edited in the file is rendered as the guarantee.",
        "release/checks.py",
        "stated = json.dumps(metadata, ",
        "stated = json.dumps({}, ",
        f"{RELEASE_FILES}test_an_edited_guarantee_is_noticed",
    ),
    Mutant(
        "a name before its content",
        "After a loss of power a file stands there without the content that was reported as written.",
        "durable.py",
        "            sync_file(draft)\n            _put_in_place",
        "            _put_in_place",
        f"{DURABLE}test_content_is_on_disk_before_the_name_and_the_name_before_it_returns",
    ),
    Mutant(
        "a folder that is not synced",
        "After a loss of power a file that was reported as written is gone.",
        "durable.py",
        "        sync_folder(path.parent)\n",
        "        pass\n",
        f"{DURABLE}test_content_is_on_disk_before_the_name_and_the_name_before_it_returns",
    ),
    Mutant(
        "a record acted upon before it is on disk",
        "A stored release, or a stream's position, is relied upon, and a loss of power takes it back.",
        "ledger/store.py",
        "        if to_act:\n            _settle(path)\n",
        "",
        f"{LEDGER}test_what_is_acted_upon_is_on_disk_first",
    ),
    Mutant(
        "records that a dataset's seal leaves out",
        "A stored release vanishes from the ledger, or a stream's position is put back, and nobody notices.",
        "ledger/rows.py",
        "    return [len(releases), len(positions), *(value for row in (*releases, *positions) for value in row)]",
        "    return []",
        f"{LEDGER}test_a_record_put_back_to_what_it_was_is_noticed",
    ),
    Mutant(
        "an output that is not claimed",
        "Of several processes that write one output all spend, and one writes.",
        "cli/options.py",
        "    with claimed(output):\n",
        "    if claimed is not None:\n",
        f"{OUTPUTS}test_an_output_that_another_process_prepares_is_refused",
    ),
    Mutant(
        "exit 2 after spending",
        "A failure after the budget was recorded is reported as a mistake that changed nothing.",
        "release/once.py",
        "        except (InputError, EngineError) as error:\n",
        "        except EngineError as error:\n",
        f"{OUTPUTS}test_a_failure_between_spending_and_storing_exits_1",
    ),
    Mutant(
        "the first value gives a column its type",
        "A column of a data frame may hold several types, and all values become what the first one is.",
        "count/engines/typed_columns.py",
        "    if len(set(map(type, present))) > 1 or len(set(map(_sort, _with_sorts(present)))) > 1:\n",
        "    if len(present) < 0:\n",
        f"{TYPED}[a date among items-first-category]",
    ),
    Mutant(
        "one zone is the zone of all",
        "One time with a zone makes instants of all times without one.",
        "count/engines/typed_columns.py",
        "if isinstance(present[0], dt.datetime | dt.time | np.datetime64)",
        "if isinstance(present[0], np.datetime64)",
        f"{TYPED}[a zone among times without-first-object]",
    ),
    Mutant(
        "decimals of several scales",
        "One file with large decimals rounds those of all other files, and items become one.",
        "count/engines/duckdb_sources.py",
        'if types["item"] == "decimal"',
        'if types["item"] == "no decimal"',
        f"{LOCALITY}test_parquet_files",
    ),
    Mutant(
        "an offset for nothing",
        "A common offset lowers what an item costs, and its own part of the bound is left out.",
        "kernel/bounds/offset_patterns.py",
        "        return mean + (most << lags.shift)\n",
        "        return most << lags.shift\n",
        f"{OFFSET}test_the_bound_holds_for_every_item",
    ),
]
