"""Bugs in the ledger and in streams: noise drawn twice, budget paid twice or not at all."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LEDGER = "tests/ledger/test_ledger.py::"
SHARED = "tests/ledger/test_shared_facts.py::"
PARALLEL = "tests/ledger/test_parallel.py::"
STREAM = "tests/stream/test_stream.py::"
FAULTS = "tests/stream/test_faults.py::"
GATE = "tests/stream/test_gate.py::"
CREATE = "tests/stream/test_create.py::"
OUTPUTS = "tests/end_to_end/test_outputs.py::"

MUTANTS = [
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
        '        return span.widened(steps * place["longest"] + slack)\n    return Span()',
        '        return span.widened(steps * place["longest"] + slack)\n    return span',
        f"{PARALLEL}test_items_count_everywhere_and_streams_for_ever",
    ),
    Mutant(
        "rows and units in one sum",
        "Of two releases one takes a row of fifty for one event, and the other protects one of its fifty.",
        "ledger/request.py",
        'if by_event and request.count != columns["count"]:',
        "if False:",
        f"{SHARED}test_events_are_of_one_kind",
    ),
    Mutant(
        "spans of two clocks in one sum",
        "What an item did within L steps by one column of times is spread over years by that of another release.",
        "ledger/request.py",
        'if by_step and place["clock"] != first["clock"]:',
        "if False:",
        f"{SHARED}test_spans_of_steps_are_of_one_clock",
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
        "a fingerprint that knows no groups",
        "An event of a closed step may be handed over again in another group, and nobody notices.",
        "stream/given_events.py",
        "\"item.cell || ':' || item.item\" if grouped",
        '"item.item" if grouped',
        "tests/stream/test_groups.py::test_an_event_that_changed_its_group_is_no_repetition",
    ),
    Mutant(
        "a stream that pays for one group",
        "Where items are protected, all groups of an item are released for the price of one.",
        "stream/mechanism.py",
        'float.fromhex(entry["scale"]), groups))',
        'float.fromhex(entry["scale"])))',
        "tests/stream/test_groups.py::test_a_stream_with_groups_is_within_its_claim_over_every_neighbour",
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
        "with state.transaction() as connection:\n        changes",
        "with state.guarded() as connection:\n        changes",
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
        "exit 2 after spending",
        "A failure after the budget was recorded is reported as a mistake that changed nothing.",
        "release/once.py",
        "        except (InputError, EngineError) as error:\n",
        "        except EngineError as error:\n",
        f"{OUTPUTS}test_a_failure_between_spending_and_storing_exits_1",
    ),
]
