"""What the exporter tells of its own work: the library's state, features on and off, failed calls."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpuwatch_exporters.device.families import exporter as of
from gpuwatch_exporters.device.frame import DeviceFrame, Value
from gpuwatch_exporters.nvml.seats import Result, Seat
from gpuwatch_exporters.nvml.session import Session

_DEVICE_FILE = re.compile(r"nvidia(\d+|ctl|-.+)")


class Accounts:
    """Counts go on when a device leaves: a counter never falls."""

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, str]] = Counter()
        self._faults: Counter[str] = Counter()
        self._timeouts = 0

    def retire(self, seat: Seat) -> None:
        """Takes over the counts of a device that left for good."""
        self._failures += seat.reader.calls.failures
        self._faults += seat.reader.faults
        self._timeouts += seat.timeouts

    def values(self, session: Session, seats: Iterable[Seat]) -> list[Value]:
        """Values of the node about the library and the calls."""
        facts = session.facts
        out = [Value(of.NVML_AVAILABLE, (), 0 if facts is None else 1), Value(of.NVML_INITS, (), session.generation)]
        if facts is None:
            out.append(Value(of.NVML_UNAVAILABLE_INFO, (session.reason,), 1))
        else:
            out.append(Value(of.NVML_INFO, (facts.driver_version, facts.library_version, facts.cuda_version), 1))
        failures, faults, timeouts = Counter(self._failures), Counter(self._faults), self._timeouts
        for seat in seats:  # copied at once: the device's own thread goes on counting
            failures.update(dict(seat.reader.calls.failures))
            faults.update(dict(seat.reader.faults))
            timeouts += seat.timeouts
        out += [Value(of.CALL_FAILURES, key, times) for key, times in sorted(failures.items())]
        out += [Value(of.GROUP_FAILURES, (feature,), times) for feature, times in sorted(faults.items())]
        out.append(Value(of.DEVICE_TIMEOUTS, (), timeouts))
        opened = open_device_files()
        if opened is not None:
            out.append(Value(of.OPEN_DEVICE_FILES, (), opened))
        return out


def features(results: Iterable[Result], disabled: Iterable[str], of_node: Mapping[str, str]) -> list[Value]:
    """How many devices have each feature on, or off and why; of_node: features of the node, "" for on."""
    counted: Counter[tuple[str, str, str]] = Counter()
    devices = 0
    for result in results:
        if result.reading is not None and result.down is None:
            devices += 1
            counted.update(_labels(id_, off) for id_, off in result.reading.features.items())
    counted.update({(id_, "off", "disabled"): devices for id_ in disabled if devices})
    counted.update(_labels(id_, off) for id_, off in of_node.items())
    return [Value(of.FEATURES, labels, number) for labels, number in sorted(counted.items())]


def with_features_off(frame: DeviceFrame, result: Result | None) -> DeviceFrame:
    """The device with what is off on it."""
    if result is None or result.reading is None or not frame.up:
        return frame
    off = (Value(of.FEATURE_OFF_INFO, (id_, why), 1) for id_, why in result.reading.features.items() if why)
    return replace(frame, values=(*frame.values, *off))


def notes(
    unavailable: str,
    devices: Iterable[DeviceFrame],
    unidentified: Iterable[tuple[str, str]],
    states: Iterable[Value],
) -> tuple[str, ...]:
    """Lines for people: the library if it is not there, devices that are down (those without a uuid by address and
    reason), features that are off."""
    lines = [f"NVML is not available: {unavailable}"] if unavailable else []
    lines += [f"GPU {each.identity.uuid} is down: {each.down_reason}" for each in devices if not each.up]
    lines += [f"the GPU at {address} is not read: {reason}" for address, reason in unidentified]
    off = ((*each.labels, each.number) for each in states if each.labels[1] == "off")
    return (*lines, *(f"{feature} is off: {reason} ({number:.0f})" for feature, _, reason, number in off))


def open_device_files() -> int | None:
    """Device files of GPUs that this process holds open; None where /proc does not tell."""
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return None
    return sum(_is_device(number) for number in numbers)


def _is_device(number: str) -> bool:
    try:
        return _DEVICE_FILE.fullmatch(os.path.basename(os.readlink(f"/proc/self/fd/{number}"))) is not None
    except OSError:
        return False


def _labels(feature: str, off: str) -> tuple[str, str, str]:
    return feature, "off" if off else "on", off
