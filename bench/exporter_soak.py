"""Runs the NVML exporter's cycle very often while MIG layouts, processes and pods come and go: does its memory grow?

    python -m bench.exporter_soak [--cycles 100000] [--gpus 4] [--seed 1]

The exporter's cycle runs without pause in a child process on the fake library. This process plays the node: it writes
new states of the fake and answers as the kubelet, all the time. One line for each tenth of the cycles: resident memory,
open files, threads. Ends with 1 if memory grew by more than 5 MB after the first tenth, or if files or threads grew.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

MOST_BYTES = 5_000_000
TENTHS = 10
CHURN_SECONDS = 0.05


def main() -> int:
    options = _options()
    if options.child is not None:
        return _child(options.child, options.cycles)
    from tests.exporters.holders.kubelet import Kubelet, serving
    from tests.fake_nvml.harness import FakeNvml

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fake, kubelet = FakeNvml(folder / "fake", gpus=options.gpus), Kubelet()
        end = threading.Event()
        with serving(folder / "kubelet.sock", kubelet):
            churn = threading.Thread(target=_churn, args=(fake, kubelet, options.gpus, options.seed, end))
            churn.start()
            command = [sys.executable, "-m", "bench.exporter_soak", "--child", str(folder)]
            try:
                done = subprocess.run(
                    [*command, "--cycles", str(options.cycles)], env={**os.environ, **fake.env()}, check=False
                )
            finally:
                end.set()
                churn.join()
            print(f"the kubelet was asked {kubelet.calls} times")
        return done.returncode


def _churn(fake: Any, kubelet: Any, gpus: int, seed: int, end: threading.Event) -> None:
    chance = random.Random(seed)
    while not end.wait(CHURN_SECONDS):
        _new_state(fake, gpus, chance)
        kubelet.text = _new_pods(gpus, chance)


def _child(folder: Path, cycles: int) -> int:
    """The cycles; prints and judges."""
    from gpuwatch_exporters.holders import HolderSettings
    from gpuwatch_exporters.nvml.exporter import NvmlExporter
    from gpuwatch_exporters.nvml.settings import Settings

    settings = Settings("soak", device_timeout=10, state_file=folder / "gpus.json", kernel_log=Path("/dev/null"))
    exporter = NvmlExporter(settings, HolderSettings(kubelet_socket=folder / "kubelet.sock", interval=0.02))
    marks: list[tuple[int, int, int]] = []
    began = time.monotonic()
    for number in range(cycles + 1):
        exporter.cycle()
        if number % max(1, cycles // TENTHS) == 0:
            marks.append(_mark())
            resident, files, threads = marks[-1]
            took = time.monotonic() - began
            print(
                f"{number:>7} cycles  {resident / 1e6:7.2f} MB  {files} files  {threads} threads  {took:6.1f} s",
                flush=True,
            )
    exporter.close()
    grown = [now - before for now, before in zip(marks[-1], marks[1], strict=True)]
    print(f"grown after the first tenth: {grown[0] / 1e6:.2f} MB, {grown[1]} files, {grown[2]} threads")
    return int(grown[0] > MOST_BYTES or grown[1] > 1 or grown[2] > 0)


def _mark() -> tuple[int, int, int]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd")), threading.active_count()


def _new_state(fake: Any, gpus: int, chance: random.Random) -> None:
    lines = [f"gpus {gpus}"]
    for gpu in range(gpus):
        kind = chance.random()
        if kind < 0.4:
            lines += [f"mig {gpu} 1 9856"] * chance.randint(1, 7)
        elif kind < 0.5:
            lines.append(f"err {gpu} * 15")
        lines.append(f"{gpu} util {chance.randint(0, 100)}")
        lines += [
            f"proc {gpu} {chance.choice((os.getpid(), 1, 4_000_000))} 100 -1" for _ in range(chance.randint(0, 4))
        ]
    fake.write(*lines)


def _new_pods(gpus: int, chance: random.Random) -> bytes:
    """Some hundred names for pods, of which a few hold GPUs at a time; names never stop being new."""
    from tests.exporters.holders.kubelet import answer, container, pod

    names = [f"pod-{chance.randrange(1_000_000)}" for _ in range(chance.randint(0, 4))]
    holds = [{"nvidia.com/gpu": [str(chance.randrange(gpus))]} for _ in names]
    return answer(*(pod(name, container("main", held)) for name, held in zip(names, holds, strict=True)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cycles", type=int, default=100_000)
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
