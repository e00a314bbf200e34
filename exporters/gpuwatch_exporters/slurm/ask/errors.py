"""Why a call failed, as one word that a metric can carry."""

from __future__ import annotations

from gpuwatch.errors import GpuwatchError

REASONS = (
    "timeout", "unreachable", "not_installed", "not_allowed", "exit_status", "http_status", "told_error", "not_json",
    "bad_answer", "too_large",
)  # fmt: skip
# The controller does not answer: whatever else were asked now would wait as long.
SILENT = ("timeout", "unreachable")
_UNREACHABLE = ("unable to contact slurm controller", "connect failure", "connection refused", "socket timed out")
_REFUSED = ("permission denied", "access/permission", "authentication", "invalid user")


class CallError(GpuwatchError):
    """A call that failed. `code` is one of REASONS."""

    code = "call"


def told_reason(told: str, otherwise: str) -> str:
    """The reason that a message of Slurm's stands for."""
    low = told.lower()
    if any(each in low for each in _UNREACHABLE):
        return "unreachable"
    return "not_allowed" if any(each in low for each in _REFUSED) else otherwise
