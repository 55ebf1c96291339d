"""Bugs in the sampler of independent noise: probabilities that are rounded, bits that are used twice, tails cut off."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

NOISE = "tests/kernel/test_noise.py::"
_BLOCKS_TOO_CLOSE = f"{NOISE}test_blocks_too_close_to_call_are_told_by_more_bits_of_the_same_number"
_NUMBERS_TOO_CLOSE = f"{NOISE}test_numbers_too_close_to_call_are_told_by_more_bits_of_the_same_number"
_AT_ONCE = f"{NOISE}test_what_is_decided_at_once_is_what_the_same_bits_say_one_by_one"
_TABLES = f"{NOISE}test_tables_hold_the_shares_of_blocks_and_are_close_to_them"
_PLACES = f"{NOISE}test_numbers_decided_late_stand_at_their_own_place_and_change_no_other"
_ANEW = f"{NOISE}test_a_rejected_number_is_drawn_anew_in_all_its_parts"
_LAW = f"{NOISE}test_the_law_by_every_string_of_bits"

MUTANTS = [
    Mutant(
        "A block is taken though the bits leave open whether it is the one before.",
        "kernel/noise.py",
        "(previous[block] <= u) & (u < low[block])",
        "(u < low[block])",
        _AT_ONCE,
    ),
    Mutant(
        "A block is taken though the bits leave open whether it is the next one.",
        "kernel/noise.py",
        "(u < low[block]) & (v",
        "(u <= low[block]) & (v",
        _AT_ONCE,
    ),
    Mutant(
        "The bounds of a probability are taken for one number, halfway between them.",
        "kernel/noise.py",
        "tuple(-floor_of(-one) for one in shares)",
        "tuple(map(floor_of, shares))",
        _TABLES,
    ),
    Mutant(
        "Whoever is drawn many at a time is accepted always.",
        "kernel/noise.py",
        "(u < low[block]) & (v < kept[block])",
        "(u < low[block])",
        _AT_ONCE,
    ),
    Mutant(
        "A number is accepted by bits that may go on to lie above the probability.",
        "kernel/noise.py",
        "if flint.arb(uniform.value + 1) <= chance:",
        "if flint.arb(uniform.value) <= chance:",
        _NUMBERS_TOO_CLOSE,
    ),
    Mutant(
        "A number is rejected by bits that may go on to lie below the probability.",
        "kernel/noise.py",
        "if flint.arb(uniform.value) >= chance:",
        "if flint.arb(uniform.value + 1) >= chance:",
        _NUMBERS_TOO_CLOSE,
    ),
    Mutant(
        "What is too close to call is rejected.",
        "kernel/noise.py",
        "if flint.arb(uniform.value) >= chance:",
        "if True:",
        _NUMBERS_TOO_CLOSE,
    ),
    Mutant(
        "What is too close to call is told by bits of another number.",
        "kernel/noise.py",
        "self.value << _WORD | _integer(source, _WORD // 8)",
        "_integer(source, 2 * _WORD // 8)",
        _BLOCKS_TOO_CLOSE,
    ),
    Mutant(
        "What is too close to call is told by its first bits, used again.",
        "kernel/noise.py",
        "self.value << _WORD | _integer(source, _WORD // 8)",
        "self.value << _WORD | self.value",
        _BLOCKS_TOO_CLOSE,
    ),
    Mutant(
        "Whether a number is accepted is told by the bits that chose its block.",
        "kernel/noise.py",
        "_Uniform(v, _WORD), source)",
        "_Uniform(u, _WORD), source)",
        _NUMBERS_TOO_CLOSE,
    ),
    Mutant(
        "The sign is one of the bits of the place.",
        "kernel/noise.py",
        "(place >> 1 & ((1 << self.log_length) - 1))",
        "(place & ((1 << self.log_length) - 1))",
        _AT_ONCE,
    ),
    Mutant(
        "The sign of a number that is decided late is one of the bits of its place.",
        "kernel/noise.py",
        "size = first + (place >> 1 &",
        "size = first + (place &",
        _LAW,
    ),
    Mutant(
        "Zero is drawn twice as often: once with each sign.",
        "kernel/noise.py",
        "sums, kept = [flint.arb(1)]",
        "sums, kept = [flint.arb(2)]",
        _TABLES,
    ),
    Mutant(
        "Zero has places, and whatever stands at them is drawn in its stead.",
        "kernel/noise.py",
        "        size[block == 0] = 0\n",
        "",
        f"{NOISE}test_zero_has_one_sign_and_is_never_rejected",
    ),
    Mutant(
        "The tail beyond the table is left out of the normaliser.",
        "kernel/noise.py",
        "flint.arb(0).union(beyond)",
        "0",
        _TABLES,
    ),
    Mutant(
        "What lies beyond the table, or too close to call, is of its last block.",
        "kernel/noise.py",
        "                return block\n            uniform.read_on(source)\n",
        "                return block\n            return len(table.low) - 1\n",
        f"{NOISE}test_what_lies_beyond_a_table_is_reached_by_more_bits",
    ),
    Mutant(
        "Numbers stand in the order in which they are decided.",
        "kernel/noise.py",
        "        for at in np.flatnonzero(~sure):\n",
        "        late = np.flatnonzero(~sure)\n"
        "        order = np.concatenate([np.flatnonzero(sure), late])\n"
        "        noise, u, v, place = noise[order], u[order], v[order], place[order]\n"
        "        for at in range(count - len(late), count):\n",
        _PLACES,
    ),
    Mutant(
        "What is not decided at once is drawn anew, so that what is hard to decide comes less often.",
        "kernel/noise.py",
        "_held(self.finish(source, int(u[at]), int(v[at]), int(place[at])))",
        "_held(self.finish(source, *self._attempt(source)))",
        _PLACES,
    ),
    Mutant(
        "Where several are decided late, all are the first of them.",
        "kernel/noise.py",
        "        for at in np.flatnonzero(~sure):\n            noise[at] =",
        "        for at in np.flatnonzero(~sure)[:1]:\n            noise[~sure] =",
        _PLACES,
    ),
    Mutant(
        "A rejected number keeps its place and its sign.",
        "kernel/noise.py",
        "            u, v, place = self._attempt(source)\n",
        "            u, v, _ = self._attempt(source)\n",
        _ANEW,
    ),
    Mutant(
        "A rejected number keeps its block.",
        "kernel/noise.py",
        "            u, v, place = self._attempt(source)\n",
        "            _, v, place = self._attempt(source)\n",
        _ANEW,
    ),
    Mutant(
        "A rejected number is told again by the bits that rejected it, until it has another block.",
        "kernel/noise.py",
        "            u, v, place = self._attempt(source)\n",
        "            u, _, place = self._attempt(source)\n",
        _ANEW,
    ),
    Mutant(
        "Blocks of the Gaussian law weigh as if each fell by as much as the first.",
        "kernel/noise.py",
        "weight * falls, falls * faster",
        "weight * falls, falls",
        _TABLES,
    ),
    Mutant(
        "Numbers wrap around where scales are largest.",
        "kernel/noise.py",
        "if count << blocks.log_length >= 1 << _MOST_BITS:",
        "if blocks.log_length > _MOST_BITS:",
        f"{NOISE}test_nothing_wraps_at_any_scale",
    ),
    Mutant(
        "Noise that does not fit is cut to its last 64 bits.",
        "kernel/noise.py",
        "return max(-_FURTHEST, min(number, _FURTHEST))",
        "return (number + _FURTHEST) % (2 * _FURTHEST + 1) - _FURTHEST",
        f"{NOISE}test_larger_numbers_than_fit_are_held_at_the_ends",
    ),
    Mutant(
        "The bits of noise are those of a generator that a seed decides.",
        "kernel/noise.py",
        "_blocks_for(law, scale, count).draw, os.urandom)",
        "_blocks_for(law, scale, count).draw, __import__('random').randbytes)",
        f"{NOISE}test_bits_are_those_of_the_operating_system",
    ),
    Mutant(
        "That a sampler is not there is found once the noise of other measurements is drawn.",
        "kernel/measure.py",
        "    require_sampler(by)\n    # All that can fail",
        "    # All that can fail",
        "tests/kernel/test_measure.py::test_a_sampler_that_is_not_there_is_refused_before_any_noise_is_drawn[seeded]",
    ),
]
