"""A library that poses as NVIDIA's: compiled once, told what it shows by a file that it reads again when it changes."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pynvml as nv

SOURCES = Path(__file__).parent
NAME = "libnvidia-ml.so.1"
_moments = itertools.count()


def library(*defines: str) -> Path:
    """The folder with the compiled library; compiled when its sources or `defines` (-D...) are new."""
    files = sorted((*SOURCES.glob("*.c"), *SOURCES.glob("*.h")))
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in files) + " ".join(defines).encode()).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"gpuwatch-fake-nvml-{os.getuid()}-{digest[:16]}"
    if not (folder / NAME).exists():
        made = Path(tempfile.mkdtemp(prefix="gpuwatch-fake-nvml-"))
        command = ["gcc", "-O2", "-shared", "-fPIC", f"-Wl,-soname,{NAME}", *(f"-D{each}" for each in defines)]
        sources = [str(each) for each in files if each.suffix == ".c"]
        subprocess.run([*command, "-o", str(made / NAME), *sources, "-lpthread"], check=True, timeout=100)
        made.chmod(0o755)  # a test may read it as another user
        try:
            made.rename(folder)  # another worker may have been first
        except OSError:
            shutil.rmtree(made)
    return folder


class FakeNvml:
    """One state of the library: for child processes by `env`, in this process between `load` and `unload`."""

    def __init__(
        self,
        folder: Path,
        gpus: int = 8,
        model: str = "NVIDIA H100 80GB HBM3",
        host: str = "node000",
        defines: tuple[str, ...] = (),
    ) -> None:
        self.folder, self.state = folder, folder / "nvml.state"
        folder.mkdir(parents=True, exist_ok=True)
        self._library = library(*defines)
        self._shown = {"FAKE_NVML_GPUS": str(gpus), "FAKE_NVML_MODEL": model, "FAKE_NVML_HOST": host}
        self._before: dict[str, str | None] = {}
        self.write()

    def write(self, *lines: str, **settings: object) -> None:
        """The whole state from now on: lines of the state language, and settings (delay_us=500) as lines."""
        told = [*lines, *(f"{name} {value}" for name, value in settings.items())]
        fresh = self.state.with_suffix(".new")
        fresh.write_text("".join(f"{line}\n" for line in told), encoding="ascii")
        moment = 10**18 + next(_moments) * 1000 + os.getpid()  # two writes in one tick of the clock differ too
        os.utime(fresh, ns=(moment, moment))
        fresh.rename(self.state)

    def env(self) -> dict[str, str]:
        """The variables of a process that is to see this state."""
        return {"LD_LIBRARY_PATH": str(self._library), "FAKE_NVML_STATE": str(self.state), **self._shown}

    def load(self) -> ctypes.CDLL:
        """Puts a private copy of the library in place of NVIDIA's in this process."""
        shown = {**self.env(), "FAKE_NVML_EAGER": "1"}
        del shown["LD_LIBRARY_PATH"]
        self._before = {name: os.environ.get(name) for name in shown}
        os.environ.update(shown)
        copy = self.folder / f"{next(_moments)}-{NAME}"
        shutil.copy(self._library / NAME, copy)
        self.shared = ctypes.CDLL(str(copy))
        nv.nvmlLib = self.shared
        nv._nvmlGetFunctionPointer_cache.clear()
        return self.shared

    def unload(self) -> None:
        """Takes it away again."""
        for name, text in self._before.items():
            if text is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = text
        nv.nvmlLib = None
        nv._nvmlGetFunctionPointer_cache.clear()
