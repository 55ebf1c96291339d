"""The two ways a call can fail without being a bug in dpwindows."""


class InputError(ValueError):
    """What the caller asked for or handed over is wrong; nothing was spent or written.

    The message says what was wrong, what was got and what to do. The command line prints it and exits 2.
    """


class EngineError(RuntimeError):
    """The surroundings failed (disk, lock, engine); nothing was written.

    The command line prints the message and exits 1.
    """
