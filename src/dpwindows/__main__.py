"""`dpwindows` and `python -m dpwindows`: the command line, which may be interrupted from its first import on."""

from __future__ import annotations

import os
import sys


class _WithoutPandas:
    """Finds no pandas.

    Commands read files and databases, never pandas' objects. Arrow and DuckDB would load pandas, where it is installed,
    only to ask whether they were given any, which takes longer than most commands.
    """

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=name)


def run() -> None:
    """Run the command line."""
    sys.meta_path.insert(0, _WithoutPandas())
    # Matrices here have some hundred rows: several threads would take longer over them, and most of it waiting.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from dpwindows.cli import main

        main(prog_name="dpwindows")
    except KeyboardInterrupt:
        # Beyond this, `dpwindows.cli.outcome` says more, and why `sys.exit` might end by the signal.
        os.write(2, b"Error: interrupted\n")
        os._exit(130)


if __name__ == "__main__":
    run()
