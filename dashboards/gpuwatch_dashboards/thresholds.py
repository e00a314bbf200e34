"""The named numbers that alerts compare with and panels draw: read from alert_rules/thresholds.yaml, never repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuwatch.errors import InputError, MissingExtraError, SettingsError

UNITS = {
    "ratio",
    "celsius",
    "count",
    "duration",
    "index",
    "seconds",
    "regex",
    "bytes_per_second",
}


@dataclass(frozen=True)
class Threshold:
    """One named number, duration, pattern or table of numbers, with its unit and the reason for its default."""

    name: str
    value: Any
    unit: str
    why: str


@dataclass(frozen=True)
class Thresholds:
    """All of them by name."""

    by_name: Mapping[str, Threshold]

    def get(self, name: str) -> Threshold:
        """The threshold called `name`; an unknown name is a SettingsError."""
        try:
            return self.by_name[name]
        except KeyError:
            raise SettingsError(
                f"no threshold is called {name!r}", todo="add it to alert_rules/thresholds.yaml or correct the name"
            ) from None

    def number(self, name: str) -> float:
        """The value of a numeric threshold; any other kind is a SettingsError."""
        value = self.get(name).value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SettingsError(f"threshold {name!r} is no number: {value!r}", todo="use a number")
        return float(value)


def alert_rules_folder() -> Path:
    """Where the rules live: beside the code in a checkout, as a sibling package in an installation."""
    here = Path(__file__).resolve()
    tried = (here.parents[2] / "alert_rules", here.parents[1] / "gpuwatch_alert_rules")
    for folder in tried:
        if (folder / "thresholds.yaml").is_file():
            return folder
    raise InputError(
        "the alert rules are not installed",
        tried=", ".join(str(folder) for folder in tried),
        todo="install gpuwatch-stack again, or run from a checkout",
    )


def read_yaml(path: Path) -> Any:
    """The content of one YAML file; InputError names the file and the place of a fault."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", todo="check the path") from error
    return parse_yaml(text, path)


def parse_yaml(text: str, path: Path) -> Any:
    """The content of YAML text that came from `path`; InputError names the file and the place of a fault."""
    try:
        import yaml
    except ImportError:
        raise MissingExtraError(
            "PyYAML is not installed", todo="pip install 'gpuwatch-stack[cli,dashboards]'"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not YAML: {error}", todo="correct the line named above") from error


def load_thresholds(path: Path | None = None) -> Thresholds:
    """Reads the thresholds file strictly: each entry is exactly value, unit and why."""
    path = path or alert_rules_folder() / "thresholds.yaml"
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise SettingsError(f"{path} holds no table of thresholds", todo="name -> {value, unit, why}")
    found: dict[str, Threshold] = {}
    for name, entry in content.items():
        if not isinstance(entry, dict) or set(entry) != {"value", "unit", "why"}:
            raise SettingsError(f"{path}: threshold {name!r} needs exactly value, unit and why")
        if entry["unit"] not in UNITS:
            raise SettingsError(f"{path}: threshold {name!r} has the unknown unit {entry['unit']!r}")
        found[name] = Threshold(name, entry["value"], entry["unit"], str(entry["why"]))
    return Thresholds(found)
