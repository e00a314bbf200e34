"""The library's file. A driver that was updated under a running process comes with another file, and the one that is
loaded will never talk to it: the new one is loaded beside it.

The old copy stays mapped (about two megabytes for each update): whoever still holds a function of it gets an error
code, where unloading it would crash him.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re

import pynvml as nv

log = logging.getLogger(__name__)
FILE = "libnvidia-ml.so.1"
_MAPPED = re.compile(r"^\S+ \S+ \S+ (?P<device>\S+) (?P<inode>\d+)\s+(?P<path>/.*/libnvidia-ml\.so\S*)( \(deleted\))?$")


def load_changed() -> bool:
    """Loads the library's file anew if it is another one than those loaded; whether it was."""
    mapped = _mapped()
    if not mapped:
        return False
    name = getattr(nv.nvmlLib, "_name", "")
    folder = os.path.dirname(name if os.path.isabs(name) else next(iter(mapped.values())))
    path = os.path.realpath(os.path.join(folder, FILE))
    try:
        inode = os.stat(path).st_ino
        if inode in mapped:
            return False
        library = ctypes.CDLL(path)  # by its own path: by the name alone the loader would give the old one again
        if inode not in _mapped():
            return False  # it did all the same
    except OSError as err:
        log.warning("the library of the new driver cannot be loaded: %s", err)
        return False
    log.info("the driver's library has changed: %s", path)
    nv.nvmlLib = library
    nv._nvmlGetFunctionPointer_cache.clear()
    return True


def _mapped() -> dict[int, str]:
    """inode -> path of each copy in this process."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
            found = [_MAPPED.match(line.rstrip("\n")) for line in lines]
    except OSError:
        return {}
    return {int(each["inode"]): each["path"] for each in found if each}
