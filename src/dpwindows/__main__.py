"""`python -m dpwindows`: the command line."""

from dpwindows.cli import main

if __name__ == "__main__":
    main(prog_name="dpwindows")
