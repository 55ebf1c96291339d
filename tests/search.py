"""What tests of Hypothesis draw: `make test` replays fixed examples, `make search` looks for others, and for more.

Fixed examples follow from the source of each test and from the version of Hypothesis alone. By default Hypothesis also
draws constants that stand in the modules loaded so far: another order of tests, or another constant anywhere in the
package, would be another search.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

SEARCHING = "SEARCH_TIMES" in os.environ
TIMES = int(os.environ.get("SEARCH_TIMES", "1"))


def choose_profile() -> None:
    """Before any test is loaded: tests take their settings from the profile that is in force then."""
    # How long an example takes is the machine's business.
    alike = settings(database=None, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("replay", alike, derandomize=True)
    settings.register_profile("search", alike, derandomize=False, max_examples=100 * TIMES)
    settings.load_profile("search" if SEARCHING else "replay")
    if not SEARCHING:
        providers._get_local_constants = lambda: providers._local_constants


def examples(number: int, steps: int = 50) -> settings:
    """So many examples, of so many steps at most where they are histories; of a search more, and longer histories."""
    return settings(max_examples=number * TIMES, stateful_step_count=2 * steps if SEARCHING else steps)
