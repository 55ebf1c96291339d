"""Bugs in reading events, in plans, and in what leaves with a release."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PAPER = "tests/strategies/test_paper.py::"
PLAN = "tests/plan/test_plan.py::"
STREAM = "tests/stream/test_stream.py::"
AUDIT_REPLAY = "tests/audit/test_replay.py::"
DURABLE = "tests/test_durable.py::"
RELEASE_FILES = "tests/release/test_files.py::"
OUTPUTS = "tests/end_to_end/test_outputs.py::"
TYPED = "tests/count/sources/test_typed_columns.py::test_one_event_more_moves_counts_by_one_or_is_refused"
TIMES = "tests/count/sources/test_time_formats.py::"
ITEMS = "tests/count/sources/test_item_types.py::"
LAYOUTS = "tests/count/sources/test_csv_layouts.py::"
LOCALITY = "tests/count/sources/test_row_locality.py::"

MUTANTS = [
    Mutant(
        "No estimate may exceed the items that there are, which are counted exactly and without noise.",
        "release/run.py",
        "        allotment.own(_estimate(asked, decoded[place]))\n",
        "        np.minimum(allotment.own(_estimate(asked, decoded[place])), answers.cumulative(asked.k)[-1])\n",
        f"{AUDIT_REPLAY}test_neighbours_in_every_cell_differ_in_nothing_but_noise[pure-item-add-remove]",
    ),
    Mutant(
        "Whatever unit is asked for, noise is calibrated to one event.",
        "plan/planned.py",
        "            unit=self.unit,\n            law=law,",
        "            unit=__import__('dpwindows.ask.privacy').privacy.EventLevel(),\n            law=law,",
        f"{PLAN}test_units_cost_what_they_promise",
    ),
    Mutant(
        "A release ends with the last step in which something happened.",
        "release/run.py",
        "rows = pa.concat_tables(tables)\n",
        "import pyarrow.compute as pc\n"
        "        last = max((int(change[0].max(initial=0)) for change in answers._changes.values()), default=0)\n"
        "        rows = pa.concat_tables(tables).filter(pc.field('last_step') <= last)\n",
        "tests/end_to_end/test_release.py::test_an_empty_log_is_released_as_noise",
    ),
    Mutant(
        "A release says how often anything changed in the log.",
        "release/run.py",
        "rows = pa.concat_tables(tables)\n",
        "rows = pa.concat_tables(tables)\n"
        "        paid = paid | {'changes': sum(change.shape[1] for change in answers._changes.values())}\n",
        "tests/end_to_end/test_release.py::test_metadata_depends_on_the_plan_alone",
    ),
    Mutant(
        "The printed delta of one point does not follow from group privacy.",
        "strategies/paper/composition.py",
        "return delta * math.exp(_log_expm1(epsilon) - _log_expm1(points * epsilon))",
        "return delta / (4 * epsilon * points * points)",
        f"{PAPER}test_errors_3_and_11_group_privacy_of_delta[1-0.05]",
    ),
    Mutant(
        "Texts that differ in case are one item in one step and two in another: one event moves the answers of both.",
        "count/dialects/duckdb.py",
        """AS VARCHAR) COLLATE "binary"'""",
        "AS VARCHAR)'",
        f"{STREAM}test_items_of_a_column_with_a_collation_are_told_apart[NOCASE]",
    ),
    Mutant(
        "An epsilon edited in the file is rendered as the guarantee.",
        "release/checks.py",
        "stated = json.dumps(metadata, ",
        "stated = json.dumps({}, ",
        f"{RELEASE_FILES}test_an_edited_guarantee_is_noticed",
    ),
    Mutant(
        "After a loss of power a file stands there without the content that was reported as written.",
        "durable.py",
        "            sync_file(draft)\n            _put_in_place",
        "            _put_in_place",
        f"{DURABLE}test_content_is_on_disk_before_the_name_and_the_name_before_it_returns",
    ),
    Mutant(
        "After a loss of power a file that was reported as written is gone.",
        "durable.py",
        "        sync_folder(path.parent)\n",
        "        pass\n",
        f"{DURABLE}test_content_is_on_disk_before_the_name_and_the_name_before_it_returns",
    ),
    Mutant(
        "Of several processes that write one output all spend, and one writes.",
        "cli/options.py",
        "    with claim(output):\n",
        "    if claim is not None:\n",
        f"{OUTPUTS}test_an_output_that_another_process_prepares_is_refused",
    ),
    Mutant(
        "A column of a data frame may hold several types, and all values become what the first one is.",
        "count/sources/typed_columns.py",
        "    if len(set(map(type, present))) > 1 or len(set(map(_sort, with_sorts))) > 1:\n",
        "    if len(present) < 0:\n",
        f"{TYPED}[a date among items-first-category]",
    ),
    Mutant(
        "One time with a zone makes instants of all times without one.",
        "count/sources/typed_columns.py",
        "if isinstance(present[0], dt.datetime | dt.time | np.datetime64)",
        "if isinstance(present[0], np.datetime64)",
        f"{TYPED}[a zone among times without-first-object]",
    ),
    Mutant(
        "One file with large decimals rounds those of all other files, and items become one.",
        "count/sources/duckdb.py",
        'if kinds["item"].kind is Kind.DECIMAL else',
        'if kinds["item"].kind is Kind.NESTED else',
        f"{LOCALITY}test_parquet_files",
    ),
    Mutant(
        "The unit of times is another one than was said.",
        "count/time_formats.py",
        '"epoch-ms": 1_000,',
        '"epoch-ms": 1_000_000,',
        f"{TIMES}test_epochs_are_instants_in_every_source[in_csv-epoch-ms]",
    ),
    Mutant(
        "A floating-point id or time with a fraction becomes the whole number below it, and two items one.",
        "count/dialects/duckdb.py",
        " AND floor({number}) = {number} THEN",
        " THEN",
        f"{ITEMS}test_floating_point_numbers_below_2_53_stand_for_one_number",
    ),
    Mutant(
        "A floating-point id beyond 2^53 becomes one of the whole numbers that it may stand for.",
        "count/dialects/duckdb.py",
        'within = f"{number} > -{beyond} AND {number} < {beyond}"',
        'within = f"{number} > -9e18 AND {number} < 9e18"',
        f"{ITEMS}test_floating_point_numbers_below_2_53_stand_for_one_number",
    ),
    Mutant(
        "Whether an id is exact depends on how the ids of other rows are written.",
        "count/dialects/duckdb.py",
        "exact = f\"contains(item, '.') AND NOT",
        "exact = f\"bool_or(contains(item, '.')) OVER () AND NOT",
        f"{ITEMS}test_every_text_by_itself",
    ),
    Mutant(
        "Times by a pattern are taken for UTC, whatever zone the release is in.",
        "count/query/relation.py",
        """moment = f"wall - coalesce(ahead, {offset_sql(self._timeline.offsets)})\"""",
        'moment = "wall - coalesce(ahead, 0)"',
        f"{TIMES}test_gap_and_fold_are_those_of_iso_text",
    ),
    Mutant(
        "What delimits the fields is guessed from the line of names, although it was said.",
        "count/sources/csv_files.py",
        "(columns.layout and columns.layout.delimiter) or delimiter_of(line)",
        "delimiter_of(line)",
        f"{LAYOUTS}test_one_delimiter_with_and_without_names[^]",
    ),
    Mutant(
        "A line with a space in its item is read as another item.",
        "count/sources/duckdb.py",
        "WHEN len(cut) = {len(header.names)}",
        "WHEN len(cut) >= {len(header.names)}",
        "tests/count/sources/test_refused_values.py::test_lines_of_spaced_text_are_told",
    ),
    Mutant(
        "An object of JSON is the text it is written with, which depends on who wrote it.",
        "count/sources/json_lines.py",
        "THEN {written} ELSE {failure} END",
        "THEN {written} ELSE {written} END",
        "tests/end_to_end/test_raw_logs.py::test_mixed_types_in_json_are_one_text_or_refused",
    ),
    Mutant(
        "A column shown by another name than it has is a text, the same in every row: all events are one item's.",
        "count/sources/sqlite.py",
        'f"+{relation}.{quote_name(name)} AS {role}"',
        'f"+{quote_name(name)} AS {role}"',
        "tests/count/sources/test_sqlite.py::test_a_name_that_is_shown_and_not_held_makes_no_item",
    ),
    Mutant(
        "A look before a release lets pass what may be a mistake, and the budget is spent.",
        "cli/release.py",
        "suspect = [*found.problems, *found.doubts]",
        "suspect = [*found.problems]",
        "tests/end_to_end/test_check_first.py::test_it_stops_without_a_terminal",
    ),
    Mutant(
        "Rows without item and time are left out of the figures of a log.",
        "count/sources/duckdb.py",
        'f" WHERE ({repeated}) IS NOT TRUE"',
        'f" WHERE NOT ({repeated})"',
        "tests/end_to_end/test_check.py::test_rows_without_item_and_time_are_counted",
    ),
    Mutant(
        "Which of two formats reads the dates of a log is decided by its first rows.",
        "count/guess.py",
        "key=lambda pair: pair[1]",
        "key=lambda pair: 0",
        "tests/count/test_guess.py::test_what_the_log_decides_is_guessed",
    ),
]
