"""The end of every run of the command line: one message on standard error and an exit code, whatever happened.

Errors that the library raises on purpose, and those that any program can meet (no memory, a full disk, a closed pipe,
Ctrl-C), become a message here. Anything else is a bug in dpwindows and shows its traceback: nothing hides it.
"""

from __future__ import annotations

import _thread
import codecs
import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn, TextIO

import click

from dpwindows.errors import EngineError, InputError

INTERRUPTED = 130
# Seconds after which an interruption that could not be raised is raised again.
_AGAIN = 0.05
_STOPPED = (
    "interrupted. What a ledger or a stream has recorded by now stays there; running the same again goes on from it"
)
# Messages repeat what was given; more of it than this helps nobody.
_LONGEST_MESSAGE = 2_000
# Arguments that messages name and that are options here.
ARGUMENTS = (
    *("at_least", "distinct_steps", "item_type", "max_draws", "max_occurrences", "max_runs", "max_steps"),
    *("memory_limit", "password_file", "spill_directory", "target_std", "time_format"),
)
# Arguments whose names are words too: options where a message begins with what they cannot be.
PLAIN_ARGUMENTS = (
    *("confidence", "delta", "end", "epsilon", "exactly", "histogram", "rho", "start", "step", "strategy", "unit"),
    *("weights", "window"),
)
_BEGINNING = re.compile(rf"^(unknown )?({'|'.join(PLAIN_ARGUMENTS)})(?= (?:'|are |has the unknown |must |needs ))")
# Arguments that messages give a value, and what is written otherwise here.
_GIVEN = re.compile(r"(?<![\w'\"-])(at_least|exactly|noise|totals)=(\w+)")
_WRITTEN = {
    "AnyWindow()": "--window any",
    "occurrences=True": "--occurrences",
    "at_least or exactly": "--at-least or --exactly",
}
_ARGUMENT = re.compile(rf"(?<![\w'\"-])({'|'.join(ARGUMENTS)})(?![\w=])")
_PLAIN = {"±": "+-", "×": "x", "–": "-", "—": "-", "…": "...", "≥": ">=", "≤": "<="}


@contextmanager
def whole_run(arguments: Sequence[str]) -> Iterator[None]:
    """Around everything a command line does: text that any screen can show, Ctrl-C at any moment, the last write."""
    for stream in (sys.stdout, sys.stderr):
        _show_anything(stream)
    with _noticing_interrupts():
        try:
            _require_text(arguments)
            with told():
                yield
        except SystemExit as ending:
            _finish(ending.code)


@contextmanager
def told() -> Iterator[None]:
    """What may go wrong becomes a message and an exit code."""
    try:
        yield
    except SystemExit:
        raise
    except BaseException as error:
        # After Ctrl-C engines fail in ways of their own: what they raise then is the interruption.
        if _interrupts.came or isinstance(error, KeyboardInterrupt):
            _fail(_STOPPED, INTERRUPTED)
        _tell(error)
        raise


def _tell(error: BaseException) -> None:
    """Exit with the message of a failure that can be expected; come back from any other."""
    match error:
        case click.exceptions.Exit():
            return
        case click.Abort():
            _fail("the input ended", 1)
        case click.exceptions.NoArgsIsHelpError():
            return
        case click.MissingParameter(ctx=click.Context() as context) if len(missing := _missing(error, context)) > 1:
            _fail(f"Missing: {', '.join(missing)}. (see '{context.command_path} --help')", error.exit_code)
        case click.UsageError(ctx=click.Context() as context):
            _fail(f"{_in_words(error.format_message())} (see '{context.command_path} --help')", error.exit_code)
        case click.ClickException():
            _fail(error.format_message(), error.exit_code)
        case InputError():
            _fail(_in_options(str(error)), 2)
        case BrokenPipeError():
            _close_output()
            _fail("what reads the output has gone away (broken pipe)", 1)
        case OSError(errno=errno.ENAMETOOLONG):
            _fail(f"the name of a file is too long: {error.filename or error}", 2)
        case EngineError() | OSError():
            _fail(str(error) or type(error).__name__, 1)
        case MemoryError():
            _fail(f"there is not enough memory for this{f' ({error})' if str(error) else ''}: ask for less at once", 1)
        case RecursionError():
            _fail("something that was read is nested too deeply", 1)
        case UnicodeEncodeError() if _is_broken(error.object):
            _fail(f"a name that is not valid UTF-8 was met: {error.object!r}; rename what is called so", 1)


def _missing(error: click.MissingParameter, context: click.Context) -> list[str]:
    """All that is required and was not given, of which click names the first."""
    # An eager option is looked for before the others are read.
    if error.param is None or error.param.is_eager:
        return []
    rest = [one for one in context.command.params if one.required and one.name not in context.params]
    missing = [one for one in rest if one.value_is_missing(one.consume_value(context, {})[0])]
    return [one.get_error_hint(context) for one in missing]


def _in_words(message: str) -> str:
    """What click says of a value, without the names of Python's types."""
    for kind, wanted in (("float", "number such as 0.5"), ("integer", "whole number such as 3")):
        message = message.replace(f"is not a valid {kind}.", f"is not a {wanted}.")
    return message


def _in_options(message: str) -> str:
    """A message with the names of arguments as those of options, but for what it says of Python."""
    for python, option in _WRITTEN.items():
        message = message.replace(python, option)
    message = _GIVEN.sub(lambda found: f"--{found[1].replace('_', '-')} {found[2]}", message)
    message = _BEGINNING.sub(lambda found: f"{found[1] or ''}--{found[2]}", message)
    return _ARGUMENT.sub(lambda found: f"--{found[0].replace('_', '-')}", message)


def one_line(text: str) -> str:
    """A message as one line of characters that a terminal shows and does not obey, cut if it is very long."""
    text = " ".join(line.strip() for line in text.splitlines() if line.strip())
    if len(text) > _LONGEST_MESSAGE:
        half = _LONGEST_MESSAGE // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _fail(message: str, code: int) -> NoReturn:
    if _interrupts.came:
        message, code = _STOPPED, INTERRUPTED
    with suppress(OSError, ValueError):
        click.echo(f"Error: {one_line(message)}", err=True)
    sys.exit(code)


def _finish(code: str | int | None) -> NoReturn:
    """Exit once everything is written; output that cannot be written is a failure too."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        _close_output()
        if code in (None, 0):
            with suppress(SystemExit):
                _fail(f"the output cannot be written: {error}", 1)
            code = 1
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    sys.exit(code)


def _close_output() -> None:
    """Nothing more is written to standard output, not even by the interpreter when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


# --- Text -----------------------------------------------------------------------------------------------------------


def _require_text(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if _is_broken(argument) or "\0" in argument:
            _fail(
                f"the argument {argument!r} is not valid UTF-8 text: names of files, columns and datasets must be; "
                "rename what is called so, or make a link to it with another name",
                2,
            )


def _is_broken(text: str) -> bool:
    """True if text holds bytes that were no UTF-8."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    """What stands for letters that a screen cannot show: usual ones in ASCII, others as JSON writes them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    shown = []
    for letter in error.object[error.start : error.end]:
        units = letter.encode("utf-16-be", "surrogatepass")
        escaped = "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
        shown.append(_PLAIN.get(letter, escaped))
    return "".join(shown), error.end


codecs.register_error("dpwindows-plain-letters", _in_plain_letters)


def _show_anything(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        with suppress(OSError, ValueError):
            reconfigure(errors="dpwindows-plain-letters")


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


class _Interruption(KeyboardInterrupt):
    """`python -m` ends by the signal once a `KeyboardInterrupt` of that very type has left an `exec`, caught or not.

    Imports are full of those: data classes are made so.
    """


class _Interrupts:
    """Raises a KeyboardInterrupt on SIGINT, and remembers that it came."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        raise _Interruption

    def lost(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Where Python cannot raise, as in a callback from C, it raises again a moment later."""
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            threading.Timer(_AGAIN, _thread.interrupt_main).start()
        else:
            sys.__unraisablehook__(unraisable)


_interrupts = _Interrupts()


@contextmanager
def _noticing_interrupts() -> Iterator[None]:
    _interrupts.came = False
    main = threading.current_thread() is threading.main_thread()
    if not (main and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
        yield
        return
    hook = sys.unraisablehook
    signal.signal(signal.SIGINT, _interrupts)
    sys.unraisablehook = _interrupts.lost
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, signal.default_int_handler)
