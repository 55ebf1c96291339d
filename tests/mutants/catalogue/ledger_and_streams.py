"""Bugs in the ledger and in streams: noise drawn twice, budget paid twice or not at all."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LEDGER = "tests/ledger/test_ledger.py::"
JOURNAL = "tests/ledger/test_journal.py::"
SHARED = "tests/ledger/test_shared_facts.py::"
PARALLEL = "tests/ledger/test_parallel.py::"
STREAM = "tests/stream/test_stream.py::"
FAULTS = "tests/stream/test_faults.py::"
GATE = "tests/stream/test_publishing.py::"
COPYING = "tests/stream/test_copying.py::"
CREATE = "tests/stream/test_create.py::"
OUTPUTS = "tests/end_to_end/test_outputs.py::"
ONE_READING = "tests/end_to_end/test_one_reading.py::"

MUTANTS = [
    Mutant(
        "The same request on the same data is drawn again: two releases average out what one hides.",
        "release/once.py",
        "found = ledger.stored(request, fingerprint)",
        "found = None",
        f"{LEDGER}test_the_same_request_on_the_same_data_returns_the_stored_release",
    ),
    Mutant(
        "Whoever may not read the mark is shown a step that nothing knows of.",
        "stream/publishing.py",
        "if not self._state.read_only or self._ledger is None:",
        "if not self._state.read_only:",
        f"{GATE}test_whoever_may_not_read_the_mark_sees_only_what_a_ledger_knows[False]",
    ),
    Mutant(
        "A stream is paid for that cannot be opened.",
        "stream/creating.py",
        """        require_private(items_folder(path), "folder of a stream's items")\n""",
        "",
        f"{CREATE}test_where_others_may_write_nothing_is_paid[items]",
    ),
    Mutant(
        "A stream restored from a backup publishes a step again, with fresh noise.",
        "ledger/ledger.py",
        "            if found != known:\n                raise StateBehindLedgerError(",
        "            if found.step > known.step + 1_000_000:\n                raise StateBehindLedgerError(",
        f"{LEDGER}test_a_stream_advances_by_its_tokens_and_nothing_else",
    ),
    Mutant(
        "The ledger records whatever is asked, beyond its total too.",
        "ledger/ledger.py",
        "            book.require_room(request)\n            number = record(",
        "            number = record(",
        f"{LEDGER}test_a_refusal_names_total_spent_asked_and_left",
    ),
    Mutant(
        "One item's occurrences lie in any number of ranges, so releases about it add up wherever they are.",
        "ledger/request.py",
        '        return span.widened(steps * place["longest"] + slack)\n    return Span()',
        '        return span.widened(steps * place["longest"] + slack)\n    return span',
        f"{PARALLEL}test_items_count_everywhere_and_streams_for_ever",
    ),
    Mutant(
        "Of two releases one takes a row of fifty for one event, and the other protects one of its fifty.",
        "ledger/request.py",
        'if by_event and own["count"] != columns["count"]:',
        "if False:",
        f"{SHARED}test_events_are_of_one_kind",
    ),
    Mutant(
        "What an item did within L steps by one column of times is spread over years by that of another release.",
        "ledger/request.py",
        'if by_step and place["clock"] != first["clock"]:',
        "if False:",
        f"{SHARED}test_spans_of_steps_are_of_one_clock",
    ),
    Mutant(
        "Once the columns of a file without a line of names are renamed, a row counts twice for the price of once.",
        "count/events.py",
        "name if names is None else names.index(name) + 1 for",
        "name for",
        f"{ONE_READING}test_columns_renamed_are_the_same_columns_for_a_ledger",
    ),
    Mutant(
        "A column of one name is two columns by two delimiters, and a row lies in both of two disjoint ranges.",
        "ledger/request.py",
        'if own.get("layout") != columns.get("layout"):',
        "if False:",
        f"{ONE_READING}test_a_column_by_another_delimiter_is_another_column",
    ),
    Mutant(
        "Beside another item, the time is another column of the same name, and nobody said so.",
        "count/sources/csv_files.py",
        "or delimiter_of(line)",
        "or max(DELIMITERS, key=lambda mark: wanted <= set(_names(line, mark)))",
        f"{ONE_READING}test_the_delimiter_does_not_follow_the_columns_asked_for",
    ),
    Mutant(
        "What times and items are read by is no part of the request: one event has two times under one clock's name.",
        "count/events.py",
        "_given(vars(self) | known | {",
        '_given({"count": None} | known | {',
        "tests/ledger/test_readings.py::test_a_ledger_knows_it_again_where_the_list_says",
    ),
    Mutant(
        "A stream pays for the instants of one column, and its dataset knows them as those of another.",
        "stream/publishing.py",
        "    columns, asked = creation.event_columns, asked_of(plan)\n",
        "    columns, asked = type(creation.columns)(creation.columns.item, creation.columns.time), asked_of(plan)\n",
        f"{ONE_READING}test_a_stream_and_a_release_of_one_dataset_know_one_column_by_one_place",
    ),
    Mutant(
        "A step that has no event is closed where such steps are to be refused.",
        "stream/stream.py",
        'refused=gaps == "refuse")',
        "refused=False)",
        "tests/stream/test_remarks.py::test_a_night_without_its_file_closes_nothing_where_gaps_are_refused",
    ),
    Mutant(
        "A step handed over again with other events is taken for the same, and its stored rows pass for theirs.",
        "stream/calls.py",
        "        if handed.of(step) != recorded(step):\n",
        "        if handed is None:\n",
        f"{STREAM}test_other_events_for_a_closed_step_are_refused",
    ),
    Mutant(
        "A call that is repeated closes its steps anew, with fresh noise.",
        "stream/stream.py",
        "        if task.finished:\n            return\n",
        "        task = task._replace(closed=task.first - 1)\n",
        f"{STREAM}test_a_repeated_call_writes_the_same_bytes",
    ),
    Mutant(
        "An event of a closed step may be handed over again in another group, and nobody notices.",
        "stream/given_events.py",
        "\" || ':' || \".join(keys)",
        '"item"',
        "tests/stream/test_groups.py::test_an_event_that_changed_its_group_is_no_repetition",
    ),
    Mutant(
        "Where items are protected, all groups of an item are released for the price of one.",
        "plan/rebuilt.py",
        'float(noise["scale"]), groups)',
        'float(noise["scale"]))',
        "tests/stream/test_groups.py::test_a_stream_with_groups_is_within_its_claim_over_every_neighbour",
    ),
    Mutant(
        "Copies of a state all publish the next step, each with its own noise: the noise averages out.",
        "stream/publishing.py",
        "        self.clear(position, leaving=True)\n        return _release_of(",
        "        return _release_of(",
        f"{GATE}test_twelve_copies_of_a_state_give_one_noise",
    ),
    Mutant(
        "A state that was put back to an earlier one draws published steps again.",
        "stream/publishing.py",
        "        behind = marked.step > position.step\n",
        "        return\n        behind = marked.step > position.step\n",
        f"{GATE}test_a_state_that_was_rolled_back_where_it_lies_is_refused",
    ),
    Mutant(
        "Nothing tells that a state was put back.",
        "stream/publishing.py",
        "        if marked != reached:\n            self._raise_mark(",
        "        if marked is None:\n            self._raise_mark(",
        f"{GATE}test_a_state_that_was_rolled_back_where_it_lies_is_refused",
    ),
    Mutant(
        "What a killed process committed is put on record, and lost when the power fails.",
        "stream/publishing.py",
        "not lived to see it on disk.\n                self._state.settle()\n",
        "not lived to see it on disk.\n                pass\n",
        f"{GATE}test_what_another_process_committed_is_on_disk_before_anyone_relies_on_it",
    ),
    Mutant(
        "Rows leave under the mark of a killed process, which a power failure takes away: nothing tells of a rollback.",
        "stream/publishing.py",
        "        if leaving or marked != reached:\n",
        "        if marked != reached:\n",
        f"{GATE}test_a_mark_that_another_process_wrote_is_on_disk_before_rows_leave",
    ),
    Mutant(
        "A reader on a disk that cannot be written shows a step that a state put back would draw again, unnoticed.",
        "stream/publishing.py",
        "            unseen = before is not None and self._ledger is None\n",
        "            unseen = False\n",
        f"{GATE}test_no_reader_shows_a_step_that_it_cannot_mark",
    ),
    Mutant(
        "Of two copies that closed one step each gets on record, and both publish it.",
        "stream/publishing.py",
        "if recorded.step > position.step or self._token(position, recorded.step) != recorded.token:",
        "if recorded.step > position.step:",
        f"{GATE}test_twelve_copies_of_a_state_give_one_noise",
    ),
    Mutant(
        "A step is on record before the copy has it: after a loss the copy's stream has ended.",
        "stream/publishing.py",
        "                self._copy(position)\n                self._ledger.advance(",
        "                self._ledger.advance(",
        f"{COPYING}test_several_steps_at_once_are_in_the_copy_before_each_is_on_record",
    ),
    Mutant(
        "Rows leave that the copy lacks: after a loss they are drawn again, with other noise.",
        "stream/publishing.py",
        "            if marked != reached or self._copy_moved:\n                self._copy(position)\n",
        "",
        f"{COPYING}test_a_machine_that_is_lost_between_any_two_calls[no ledger]",
    ),
    Mutant(
        "A state that was put back takes the place of the copy that its stream could go on from.",
        "stream/copying.py",
        "    if kept.token != token_at(step):\n",
        "    if not kept.token:\n",
        f"{COPYING}test_a_state_that_was_put_back_does_not_replace_the_copy[no ledger]",
    ),
    Mutant(
        "A copy of a state gets its name before the items that it needs are beside it.",
        "stream/copying.py",
        "            if behind:\n                _write_parts(",
        "            if behind:\n"
        "                items_folder(target).mkdir(mode=0o700, exist_ok=True)\n"
        "                fill = partial(_back_up, state)\n"
        "                write_atomically(target, lambda draft: fill(Path(draft)), replace=True, private=True)\n"
        "                _write_parts(",
        f"{COPYING}test_a_machine_that_is_lost_within_a_call[no ledger]",
    ),
    Mutant(
        "A copy that a killed process made is relied upon, and lost when the power fails.",
        "stream/copying.py",
        "                sync_folder(target.parent)\n",
        "                pass\n",
        f"{COPYING}test_a_copy_that_another_process_made_is_on_disk_before_it_is_relied_upon",
    ),
    Mutant(
        "A call for several steps closes them all, though its ledger has none of them.",
        "stream/stream.py",
        "            self._gate.record(self._position)\n",
        "",
        f"{GATE}test_no_step_stands_on_one_that_the_ledger_does_not_have",
    ),
    Mutant(
        "A manifest names items that a power failure takes away.",
        "stream/closing.py",
        "        kept.settle(tuple(part for part in parts if part not in before.parts))\n",
        "        pass\n",
        f"{GATE}test_parts_state_ledger_mark_and_rows_follow_each_other",
    ),
    Mutant(
        "A part that was altered, or is of another state, is counted as if it were the one that was written.",
        "stream/parts.py",
        "            if not whole:\n",
        "            if whole is None:\n",
        "tests/stream/test_recencies.py::test_a_part_that_is_not_as_it_was_written_is_noticed",
    ),
    Mutant(
        "Where no lock tells, two processes close one step, each with noise of its own.",
        "stream/records.py",
        "        if moved.rowcount != 1:\n",
        "        if moved.rowcount > 1:\n",
        "tests/stream/test_records.py::test_a_step_is_closed_from_where_the_state_is_and_from_nowhere_else",
    ),
    Mutant(
        "A journal of an earlier state, put beside it, takes published steps back, and they are drawn again.",
        "stream/store.py",
        '        require_current_journal(path, "state")\n',
        "",
        f"{GATE}test_a_journal_of_an_earlier_state_undoes_nothing",
    ),
    Mutant(
        "Once parts are written as one, known items count as new ones.",
        "stream/recencies.py",
        "WHERE NOT EXISTS (SELECT 1 FROM ({others}) AS later WHERE {same})",
        "WHERE 1 = 0",
        "tests/stream/test_recencies.py::test_what_can_no_longer_matter_is_forgotten",
    ),
    Mutant(
        "An item that has one group moves to that of its newest row.",
        "stream/recencies.py",
        "coalesce(max(own.cell), happened.cell) AS code",
        "happened.cell AS code",
        "tests/stream/test_groups.py::test_an_item_stays_in_the_group_that_it_was_first_in",
    ),
    Mutant(
        "An item that no window asks for any more is forgotten, and comes back in a second group.",
        "stream/recencies.py",
        "return self.totals or bool(self.had) or self._one_group",
        "return self.totals or bool(self.had)",
        "tests/stream/test_groups.py::test_an_item_stays_in_the_group_that_it_was_first_in",
    ),
    Mutant(
        "A step drawn again passes for the one that was published.",
        "stream/records.py",
        "    return digest(creation.state_id, steps[0].step, steps[-1].step, *parts)[:32]",
        "    return digest(creation.state_id, steps[0].step, steps[-1].step)[:32]",
        f"{GATE}test_another_noise_has_another_release_id",
    ),
    Mutant(
        "Two processes that make one stream both spend its budget, and one of them says that nothing was spent.",
        "stream/creating.py",
        "    with claim(path):",
        "    if path:",
        f"{CREATE}test_whoever_comes_while_a_stream_is_paid_for_pays_nothing",
    ),
    Mutant(
        "A creation that failed after it was paid for is paid for again when it is repeated.",
        "stream/creating.py",
        "        draft = _paid_draft(path, creation, ledger)",
        "        draft = None",
        f"{CREATE}test_what_was_paid_for_and_not_named_is_named_by_the_next_call",
    ),
    Mutant(
        "After a crash counts, noise and rows are of different steps.",
        "stream/records.py",
        "    with state.transaction() as connection:\n        moved",
        "    with state.guarded() as connection:\n        moved",
        f"{FAULTS}test_a_failed_commit_is_found_out_afterwards",
    ),
    Mutant(
        "Occurrences of an item in L consecutive steps are counted further apart than L steps.",
        "stream/calls.py",
        'if late == "move" and isinstance(unit, ItemPerPeriod):',
        'if late == "move" and unit is ItemPerPeriod:',
        f"{STREAM}test_moving_is_refused_within_a_period",
    ),
    Mutant(
        "A stored release, or a stream's position, is relied upon, and a loss of power takes it back.",
        "ledger/store.py",
        "        if to_act:\n            _settle(path)\n",
        "",
        f"{LEDGER}test_what_is_acted_upon_is_on_disk_first",
    ),
    Mutant(
        "A stored release vanishes from the ledger, or a stream's position is put back, and nobody notices.",
        "ledger/rows.py",
        "    return [len(releases), len(positions), *(value for row in (*releases, *positions) for value in row)]",
        "    return []",
        f"{LEDGER}test_a_record_put_back_to_what_it_was_is_noticed",
    ),
    Mutant(
        "A failure after the budget was recorded is reported as a mistake that changed nothing.",
        "release/once.py",
        "        except (InputError, EngineError) as error:\n",
        "        except EngineError as error:\n",
        f"{OUTPUTS}test_a_failure_between_spending_and_storing_exits_1",
    ),
    Mutant(
        "A ledger that was moved without its journal and back forgets what was spent, and draws the same release anew.",
        "ledger/journal.py",
        "    if ahead > 0:\n",
        "    if ahead > 1_000_000:\n",
        f"{JOURNAL}test_what_was_spent_under_another_name_is_not_undone",
    ),
    Mutant(
        "What is left of an interrupted write is found under one name of a ledger, and spent from under the other.",
        "ledger/store.py",
        "    require_one_name(path)\n",
        "",
        f"{JOURNAL}test_a_second_name_is_refused",
    ),
    Mutant(
        "A process and its copy, to which the engine's lock says nothing, publish one step with two noises.",
        "stream/store.py",
        "        if os.getpid() != self._process:\n            raise in_use(self.path)",
        "        if os.getpid() == 0:\n            raise in_use(self.path)",
        f"{GATE}test_a_forked_copy_of_the_process_hands_out_nothing",
    ),
]
