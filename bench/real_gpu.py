"""Runs the NVML exporter on what is here and tells what each feature gave, and where the stand-in library differs.

    python -m bench.real_gpu [--seconds 25] [--against FILE] [--output FILE]

Run it on a machine with a GPU and keep its output (--output); run it again with LD_LIBRARY_PATH on the stand-in of
tests/fake_nvml and --against that file: the second table then lists the families that only one of the two has. The
longest reading of each GPU says whether --device-timeout suits this driver.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from gpuwatch_exporters.device.families import exporter as told
from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.holders import HolderSettings
from gpuwatch_exporters.nvml.exporter import NvmlExporter
from gpuwatch_exporters.nvml.settings import Settings

from gpuwatch.errors import InputError


def main() -> int:
    options = _options()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    frames = _frames(options.seconds)
    last = frames[-1]
    found = {"driver": _drivers(last), "families": dict(_families(last)), "features": _features(last)}
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"driver and GPUs: {', '.join(found['driver']) or 'none'}; {len(frames)} cycles")
    _table(("feature", "state", "reason", "GPUs"), sorted(found["features"]))
    longest = max(
        (v.number for f in frames for d in f.devices for v in d.values if v.family is told.READ_SECONDS), default=None
    )
    print(f"{len(found['families'])} families, {sum(found['families'].values())} samples of devices")
    print(f"longest reading of a GPU: {'none' if longest is None else f'{1000 * longest:.1f} ms'}")
    if options.against:
        _difference(found["families"], _read(options.against)["families"])
    return 0 if last.devices else 1


def _frames(seconds: float) -> list[Frame]:
    exporter = NvmlExporter(Settings("here", interval=2.0), HolderSettings())
    frames, end = [], time.monotonic() + seconds
    try:
        while not frames or time.monotonic() < end:
            frames.append(exporter.frame())
            time.sleep(2.0)
    finally:
        exporter.close()
    return frames


def _drivers(frame: Frame) -> list[str]:
    kinds = Counter((each.identity.driver_version, each.identity.model) for each in frame.devices)
    return [f"{version} {count} x {model}" for (version, model), count in sorted(kinds.items())]


def _families(frame: Frame) -> Counter[str]:
    found: Counter[str] = Counter()
    for device in frame.devices:
        found.update(each.family.name for each in device.values)
        for instance in device.instances:
            found.update(each.family.name for each in instance.values)
    return found


def _features(frame: Frame) -> list[tuple[str, ...]]:
    return [(*v.labels, str(int(v.number))) for v in frame.values if v.family is told.FEATURES]


def _read(path: Path) -> dict[str, dict[str, int]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"families": dict(found["families"])}
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise InputError(f"{path}: {err}", todo="give the file that --output wrote on the other machine") from err


def _difference(here: dict[str, int], there: dict[str, int]) -> None:
    only: dict[str, list[str]] = defaultdict(list)
    for name in sorted(here.keys() ^ there.keys()):
        only["here" if name in here else "there"].append(name)
    _table(("family", "only"), [(name, side) for side, names in sorted(only.items()) for name in names])
    print(f"{len(here.keys() & there.keys())} families on both sides")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=25.0, help="how long it runs (default: %(default)s)")
    parser.add_argument("--against", type=Path, metavar="FILE", help="what --output wrote elsewhere")
    parser.add_argument("--output", type=Path, metavar="FILE", help="keep what was found, for --against")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as err:
        sys.exit("\n".join(err.lines()))
