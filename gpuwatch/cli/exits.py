"""Exit codes and the faults that have their own."""

from __future__ import annotations

from gpuwatch.errors import GpuwatchError

OK = 0
FAILED = 1
USAGE = 2
FOUND = 10  # something at or above --fail-on
PARTIAL = 11  # part of the data is missing and --strict was asked for
INTERRUPTED = 130


class UsageError(GpuwatchError):
    """The command line itself is wrong: nothing was read, nothing was computed."""

    code = "usage"
    exit_code = USAGE


def choice(option: str, given: str, choices: list[str] | tuple[str, ...]) -> str:
    """`given` when it is one of `choices`, else a UsageError that lists them."""
    if given in choices:
        return given
    raise UsageError(f"{option} cannot be {given!r}", todo=f"choose one of: {', '.join(choices)}")
