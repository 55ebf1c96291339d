"""`dpwindows` and `python -m dpwindows`: the command line, which may be interrupted from its first import on."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command line."""
    try:
        from dpwindows.cli import main

        main(prog_name="dpwindows")
    except KeyboardInterrupt:
        # Beyond this, `dpwindows.cli.outcome` says more.
        sys.stderr.write("Error: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    run()
