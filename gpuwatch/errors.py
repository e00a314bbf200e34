"""The error tree: every fault a user can meet, as three lines (what failed, what was tried, what to do next)."""

from __future__ import annotations


class GpuwatchError(Exception):
    """A fault that is told to the user without a traceback.

    `what` names the thing that failed, `tried` what gpuwatch did before it gave up, `todo` what the user can do.
    `code` is a stable machine-readable cause, used in findings, API problems and `skipped[]` lists.
    """

    code = "error"

    def __init__(self, what: str, *, tried: str = "", todo: str = "", code: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.tried = tried
        self.todo = todo
        if code is not None:
            self.code = code

    def lines(self) -> list[str]:
        """The lines to print on stderr, without empty ones."""
        out = [f"error: {self.what}"]
        if self.tried:
            out.append(f"tried: {self.tried}")
        if self.todo:
            out.append(f"to do: {self.todo}")
        return out


class InputError(GpuwatchError):
    """A file, snapshot, trace or setting that cannot be read as what it claims to be."""

    code = "bad_input"


class SourceError(GpuwatchError):
    """A source (Prometheus, file, store) that did not answer, or answered something unusable.

    `code` is one of: unreachable, timeout, http_status, not_json, bad_answer, partial, query_error, too_large.
    """

    code = "source_error"


class SettingsError(InputError):
    """A setting that is unknown, ill-typed or that the chosen backend cannot honor."""

    code = "bad_settings"


class RegistryError(GpuwatchError):
    """Two things registered under one id, or an id that nothing registered."""

    code = "registry"


class MissingExtraError(GpuwatchError):
    """An optional dependency is not installed; `todo` holds the one line that installs it."""

    code = "missing_extra"
