"""Bearer tokens from a file of SHA-256 sums: the file can leak without giving anyone access."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.errors import SettingsError

_SUM = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Who may ask: name -> SHA-256 of the token, in lower-case hex."""

    sums: dict[str, str]

    def holder(self, token: str) -> str | None:
        """Name of the holder of `token`; None when nobody's. Takes equally long whichever it is."""
        asked = hashlib.sha256(token.encode()).hexdigest()
        found = None
        for name, known in self.sums.items():
            if hmac.compare_digest(asked, known):
                found = name
        return found


def read_tokens(path: Path | str) -> Tokens:
    """Reads lines of `NAME SHA256`, skipping blank ones and those that begin with #. SettingsError names the line."""
    try:
        rows = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise SettingsError(f"cannot read the token file {path}: {err}", todo="check its path and permissions") from err
    sums: dict[str, str] = {}
    for line, row in enumerate(rows, start=1):
        words = row.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not _SUM.fullmatch(words[1]) or words[0] in sums:
            raise SettingsError(
                f"{path}, line {line}: not a new name and a SHA-256 sum",
                todo="write: NAME $(printf %s TOKEN | sha256sum | cut -d' ' -f1)",
            )
        sums[words[0]] = words[1]
    if not sums:
        raise SettingsError(f"the token file {path} holds no token", todo="add a line: NAME SHA256")
    return Tokens(sums)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
