"""Entry point of `gpuwatch`: turns every way to end into an exit code, and every fault into three lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from gpuwatch.cli.exits import FAILED, INTERRUPTED
from gpuwatch.errors import GpuwatchError

_NEEDED = ("typer", "click", "rich", "pydantic", "httpx", "yaml")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; prints only what the command asked for."""
    args = list(sys.argv[1:] if argv is None else argv)
    _stand_in_for_closed_streams()
    try:
        return _run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except GpuwatchError as err:
        _told(err.lines(), args)
        return int(getattr(err, "exit_code", FAILED))
    except Exception as err:  # the last net: a fault of ours is still told in lines, not as a traceback
        what = f"error: unexpected {type(err).__name__}: {err}"
        _told([what, "to do: this is a fault of gpuwatch; run again with -vv and report what it prints"], args)
        return FAILED


def _run(args: list[str]) -> int:
    try:
        from gpuwatch.cli.app import build_app
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] not in _NEEDED:
            raise
        print("error: the command line is not installed; run: pip install 'gpuwatch-stack[cli]'", file=sys.stderr)
        return FAILED
    import typer

    try:
        code = build_app()(args=args, prog_name="gpuwatch", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except Exception as err:
        # Usage faults of the option parser know how to print themselves and which code they mean.
        show = getattr(err, "show", None)
        if show is None or not hasattr(err, "exit_code"):
            raise
        show(file=sys.stderr)
        return int(err.exit_code)
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _stand_in_for_closed_streams() -> None:
    """A stream that the caller closed (`>&-`) is None here, and its number would go to the next file that is opened.

    A stand-in for stdout refuses to be written to, so that lost data is an error; what stderr would say is dropped.
    """
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115  lives as long as we
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _told(lines: list[str], args: list[str]) -> None:
    if _verbosity(args) >= 2:
        import traceback

        traceback.print_exc()
    for line in lines:
        print(line, file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:  # what could not be written is told; the interpreter would try again at exit, and tell it anew
        _drop_stdout()


def _verbosity(args: list[str]) -> int:
    # Read from the raw arguments, because a fault may come before the options are parsed.
    return sum(len(arg) - 1 if set(arg[1:]) == {"v"} else 1 for arg in args if arg == "--verbose" or arg[:2] == "-v")


def _reader_gone() -> int:
    """`| head` closed the pipe: nothing to say."""
    _drop_stdout()
    return 0


def _drop_stdout() -> None:
    """What is left to be written goes nowhere, so that the interpreter does not fail to flush it at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
