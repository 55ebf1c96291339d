"""Checks test vectors by what docs/vectors.md says of them, without dpwindows: python check.py FILE.json ..."""

import json
import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import accumulate, chain, combinations, islice, product
from pathlib import Path

getcontext().prec, LIMIT = 130, Decimal(10) ** -60  # less is left out, and what is nearer is too close to call


def answers(item, slots, groups, group, windows):
    """What an item, given by its occurrences in each step and group, adds to counts of a group (None: of all)."""
    events = [(step, own, number) for (step, own), number in zip(slots, item) if number]
    counted = list(dict.fromkeys(own for _, own, _ in events))[: groups and groups["max_groups"]]
    held = [(step, number) for step, own, number in events if group is None or (own == group and own in counted)]
    return [n if k == -1 else int(n >= k) for k, a, b in windows for n in [sum(m for at, m in held if a <= at <= b)]]


def measure(item, slots, groups, made):
    """What is measured of an item, threshold by threshold."""
    read = [answers(item, slots, groups, group, made["reads"]) for group in made["groups"]]
    return [sum(map(int.__mul__, row, own)) for rows in made["matrix"] for own in read for row in rows]


def neighbours(items, unit, slots):
    """Pairs of items that differ as the unit says."""
    if unit == "event":
        return [(a, b) for a in items for n in range(len(slots)) if (b := (*a[:n], a[n] + 1, *a[n + 1 :])) in items]
    if unit == "item-add-remove":
        return [(min(items), one) for one in items]
    period = slots[-1][0] if unit == "item" else int(unit.removeprefix("item-per:"))
    apart = ((pair, [slot[0] for slot, a, b in zip(slots, *pair) if a != b]) for pair in combinations(items, 2))
    return [pair for pair, steps in apart if steps[-1] - steps[0] < period]


def draw(noise, digits, total):
    """The numbers that bits make, and how many bytes are left of them."""
    bits, size, power = iter(bytes.fromhex(digits)), 2 ** noise["block_bits"], 1 + (noise["law"] == "discrete Gaussian")
    scale = power * Fraction(noise["scale"]) ** power
    rate, weights = Decimal(scale.denominator) / scale.numerator, [Decimal(1)]
    while weights[-1] > LIMIT:
        weights.append(2 * size * (-rate * ((len(weights) - 1) * size + 1) ** power).exp())
    shares = [one / sum(weights) for one in accumulate(weights)]

    def word(length=8):
        return int.from_bytes(islice(bits, length), "little")

    def below(uniform, chance):
        while True:
            value, scaled = uniform[0], chance * 2 ** uniform[1]
            if value + 1 <= scaled - LIMIT or value >= scaled + LIMIT:
                return value < scaled
            uniform[:] = [value << 64 | word(), uniform[1] + 64]

    def finish(u, v, place):
        block = next(number for number, share in enumerate(shares) if below(u, share))
        first = (block - 1) * size + 1
        found = first + (place >> 1) % size
        if block == 0 or below(v, (-rate * (found**power - first**power)).exp()):
            return 0 if block == 0 else -found if place & 1 else found
        return finish([word(), 64], [word(), 64], word(8 * (noise["block_bits"] // 64 + 1)))

    begun = [[word() for _ in range(total)] for _ in range(3)]
    return [finish([u, 64], [v, 64], place) for u, v, place in zip(*begun)], len(list(bits))


def check(vector):
    """Name what does not hold of a vector."""
    groups, budget, spent, flat = vector["groups"], vector["budget"], 0, chain.from_iterable
    slots = list(product(range(1, vector["steps"] + 1), groups["values"] if groups else [None]))
    log = {event[0]: [0] * len(slots) for event in vector["log"]}
    for item, step, group, occurrences in vector["log"]:
        log[item][slots.index((step, group))] += occurrences
    items = dict.fromkeys(product(range(vector["most"] + 1), repeat=len(slots)))
    pairs = neighbours(items, vector["unit"], slots)
    for made in vector["measurements"]:
        noise, bound, power = made["noise"], made["sensitivity"], 1 + (made["noise"]["law"] == "discrete Gaussian")
        windows = [(k, *window) for k in made["thresholds"] for window in made["windows"]]
        counts = ([answers(one, slots, groups, group, windows) for group in made["groups"]] for one in log.values())
        exact = list(map(sum, zip(*(measure(one, slots, groups, made) for one in log.values()))))
        moved = {one: measure(one, slots, groups, made) for one in items}
        largest = max(sum(abs(a - b) ** power for a, b in zip(moved[one], moved[other])) for one, other in pairs)
        drawn = [draw(noise, bits, len(own)) for bits, own in zip(noise["bits"], noise["numbers"])]
        holds = {
            "counts": list(map(sum, zip(*map(flat, counts)))) == list(flat(flat(made["counts"]))),
            "measured": exact == list(flat(made["measured"])),
            "sensitivity": largest == int(bound["largest"]) <= int(bound["bound"]),
            "noise": drawn == [(own, 0) for own in noise["numbers"]],
            "noisy": list(map(int.__add__, exact, flat(noise["numbers"]))) == list(flat(made["noisy"])),
        }
        yield from (f"{made['window']}: {name}" for name, true in holds.items() if not true)
        spent += Fraction(int(bound["bound"])) / Fraction(noise["scale"]) ** power / power
    if "delta" not in budget and spent > Fraction(budget["epsilon" if power == 1 else "rho"]):
        yield "budget"


if __name__ == "__main__":
    sys.exit("\n".join(f"{a}: {no}" for a in sys.argv[1:] for no in check(json.loads(Path(a).read_text()))) or 0)
