"""User names by uid, looked up once in a while: on many clusters each look-up is a question to a directory server."""

from __future__ import annotations

import pwd
import time
from collections import OrderedDict

_KEPT, _SECONDS = 1024, 600.0


class Names:
    """A bounded cache. Used only on the threads of sources: a look-up may hang as long as the directory does."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[str, float]] = OrderedDict()

    def of(self, uid: int) -> str:
        """The name, or the number as text where there is none."""
        now = time.monotonic()
        known = self._known.get(uid)
        if known is None or now - known[1] > _SECONDS:
            self._known[uid] = known = (_name(uid), now)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return known[0]


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OSError, OverflowError):
        return str(uid)
