"""Basic authentication against bcrypt hashes: slow once for each pair of name and password, then from memory."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping

from gpuwatch_exporters.serving.web_config.tree import extra_missing

_REMEMBERED = 256
_BCRYPT_BYTES = 72  # what the algorithm reads of a password


class Passwords:
    """The users of one configuration. `check` may come from any thread.

    What is remembered is a keyed hash of name and password: nothing in memory is worth stealing beyond the request
    itself, and looking it up tells a stopwatch nothing. A name that is not known costs as much as one that is.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        try:
            import bcrypt
        except ImportError as err:
            raise extra_missing("bcrypt") from err
        self._compare: Callable[[bytes, bytes], bool] = bcrypt.checkpw
        self._users = {name: text.encode() for name, text in users.items()}
        self._key = os.urandom(32)
        self._known: OrderedDict[bytes, bool] = OrderedDict()
        highest = max(int(text[4:6]) for text in users.values())
        self._nobody = bcrypt.gensalt(highest) + b"." * 31

    def check(self, header: str) -> bool | Callable[[], bool]:
        """Whether the Authorization header is right; a callable that finds out where that takes a while."""
        pair = _pair(header)
        if pair is None:
            return False
        digest = hashlib.blake2b(b"\0".join(pair), key=self._key).digest()
        known = self._known.get(digest)
        return (lambda: self._find_out(pair, digest)) if known is None else known

    def _find_out(self, pair: tuple[bytes, bytes], digest: bytes) -> bool:
        name, password = pair
        kept = self._users.get(name.decode("utf-8", "replace"))
        try:
            same = self._compare(password[:_BCRYPT_BYTES], kept or self._nobody)
        except ValueError:  # a zero byte in the password
            same = False
        found = same and kept is not None
        self._known[digest] = found
        while len(self._known) > _REMEMBERED:
            self._forget()
        return found

    def _forget(self) -> None:
        """Wrong ones go first, so that guessing never pushes out who is right."""
        wrong = next((digest for digest, right in self._known.items() if not right), None)
        if wrong is None:
            self._known.popitem(last=False)
        else:
            del self._known[wrong]


def _pair(header: str) -> tuple[bytes, bytes] | None:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(token.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    return (name, password) if colon else None
