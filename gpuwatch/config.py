"""The configuration file: read strictly, every fault told with its key, its line and the nearest known key.

Says what to build, builds nothing (that is wiring/).
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from gpuwatch.errors import MissingExtraError, SettingsError
from gpuwatch.forecast.members import check_models
from gpuwatch.model.catalogue import cards
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.model.values import value

T = TypeVar("T")
Where = tuple[str | int, ...]

_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")  # what pydantic calls a key that nobody knows
SOURCE_KINDS = ("prometheus", "snapshot", "trace", "generated")


@value
class ListenSettings:
    """[listen]: where the daemon answers. A host that is not loopback needs a token file."""

    host: str = "127.0.0.1"
    port: int = 9438
    token_file: str | None = None


@value
class StoreSettings:
    """[store]: where demand history and evaluations are kept. url "" means: keep nothing."""

    url: str | None = None
    retention_days: int = 90
    keep_evaluations: int = 50  # whole documents; headline numbers are kept for all retention_days


@value
class SourceConfig:
    """One [[source]]: its kind, its own settings as written, and where it stands in the file."""

    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    origin: str = "settings"
    text: str = ""
    at: tuple[str | int, ...] = ()


@value
class Config:
    """A whole configuration file."""

    cluster: str = "default"
    interval_seconds: float = 60.0
    listen_host: str = "127.0.0.1"
    listen_port: int = 9438
    token_file: str | None = None
    store_url: str = ""
    retention_days: int = 90
    keep_evaluations: int = 50
    sources: tuple[SourceConfig, ...] = ()
    analysis: AnalysisSettings = field(default_factory=AnalysisSettings)


@value
class InputSpec:
    """What one command evaluates: exactly one of a snapshot file, a configuration, a trace folder, or the generator.

    load_ratio fills a trace's cluster until that share of its GPU capacity is asked for; None leaves it empty.
    """

    kind: Literal["snapshot", "config", "trace", "generated"]
    path: str | None = None
    workload: str = "default"
    load_ratio: float | None = None
    policy: str = "best_fit"
    seed: int = 7
    scale: int = 1
    forecast_models: tuple[str, ...] | None = None  # None: as the input's settings say


@value
class _Head:
    cluster: str = "default"
    interval_seconds: float = 60.0


def default_store_url() -> str:
    """SQLite in the user's state folder (XDG_STATE_HOME, else ~/.local/state)."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return f"sqlite:///{base / 'gpuwatch' / 'gpuwatch.db'}"


def load_config(path: Path | str) -> Config:
    """Reads a TOML file, or YAML when its name ends in .yaml or .yml. SettingsError names key and line."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise SettingsError(f"cannot read {path}: {err}", todo="check the path and its permissions") from err
    return parse_config(text, origin=str(path), is_yaml=path.suffix in (".yaml", ".yml"))


def parse_config(text: str, origin: str = "configuration", *, is_yaml: bool = False) -> Config:
    """load_config of a text."""
    raw = _yaml(text, origin) if is_yaml else _toml(text, origin)
    known = ["cluster", "interval_seconds", "listen", "store", "analysis", "source"]
    for key in raw:
        if key not in known:
            raise _fault(text, origin, (key,), "unknown key", _nearest(key, known))
    head = read_table(_Head, {k: v for k, v in raw.items() if k in ("cluster", "interval_seconds")}, text, origin, ())
    listen = read_table(ListenSettings, raw.get("listen", {}), text, origin, ("listen",))
    store = read_table(StoreSettings, raw.get("store", {}), text, origin, ("store",))
    analysis = read_table(AnalysisSettings, raw.get("analysis", {}), text, origin, ("analysis",))
    _check_prices(analysis, text, origin)
    _check_models(analysis, text, origin)
    if not 0 <= listen.port <= 65535:
        raise _fault(text, origin, ("listen", "port"), "not a port (0 to 65535)")
    return Config(
        cluster=head.cluster,
        interval_seconds=head.interval_seconds,
        listen_host=listen.host,
        listen_port=listen.port,
        token_file=listen.token_file,
        store_url=default_store_url() if store.url is None else store.url,
        retention_days=store.retention_days,
        keep_evaluations=store.keep_evaluations,
        sources=tuple(_sources(raw.get("source", []), text, origin)),
        analysis=analysis,
    )


def read_table(cls: type[T], table: object, text: str, origin: str, at: Where) -> T:
    """`table` as a value of `cls` (a dataclass made by model.values.value), or a SettingsError with key and line."""
    from pydantic import TypeAdapter, ValidationError

    if not isinstance(table, Mapping):
        raise _fault(text, origin, at, "must be a table of keys")
    try:
        # Through JSON, because there a list may stand for a tuple and a string for a path, and nothing else is bent.
        made: T = TypeAdapter(cls).validate_json(json.dumps(table, default=str))
    except ValidationError as err:
        # A misspelled key is also a missing one; its right spelling is the better answer.
        faults = sorted(err.errors(include_url=False, include_input=False), key=lambda f: f["type"] not in _UNKNOWN)
        fault = faults[0]
        loc = tuple(step for step in fault["loc"] if isinstance(step, (str, int)))
        if fault["type"] in _UNKNOWN:
            known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
            raise _fault(text, origin, (*at, *loc), "unknown key", _nearest(str(loc[-1]), known)) from err
        raise _fault(text, origin, (*at, *loc), fault["msg"]) from err
    for name, bound in _out_of_bounds(made):
        raise _fault(text, origin, (*at, name), f"must be {bound}")
    return made


# How a field's unit bounds it: suffix -> (lowest, highest, words).
_BOUNDS: tuple[tuple[str, float, float, str], ...] = (
    ("load_ratio", 0.0, 2.0, "between 0 and 2"),
    ("margin_ratio", 1.0, math.inf, "at least 1"),
    ("_ratio", 0.0, 1.0, "between 0 and 1"),
    ("interval_seconds", 1.0, 86400.0, "between 1 and 86400"),
    ("_seconds", 0.0, math.inf, "0 or more"),
    ("_hours", 1, 24 * 366, "between 1 and 8784"),
    ("_days", 1, 36500, "between 1 and 36500"),
    ("scale", 1, 1000, "between 1 and 1000"),
    ("keep_evaluations", 1, 100_000, "between 1 and 100000"),
)


def _out_of_bounds(made: object) -> Iterator[tuple[str, str]]:
    for each in fields(made):  # type: ignore[arg-type]
        number = getattr(made, each.name)
        rule = next((b for b in _BOUNDS if each.name.endswith(b[0])), None)
        if rule and isinstance(number, (int, float)) and not rule[1] <= number <= rule[2]:
            yield each.name, rule[3]


def _check_prices(analysis: AnalysisSettings, text: str, origin: str) -> None:
    known = [*cards(), "default"]
    for name, price in analysis.gpu_hour_price.items():
        at = ("analysis", "gpu_hour_price", name)
        if name not in known:  # a misspelled card would silently stay without a price
            raise _fault(text, origin, at, "no card of the catalogue is called so", _nearest(name, known))
        if not (math.isfinite(price) and price >= 0):
            raise _fault(text, origin, at, "a price must be 0 or more")


def _check_models(analysis: AnalysisSettings, text: str, origin: str) -> None:
    try:
        check_models(analysis.forecast_models)
    except SettingsError as err:
        raise _fault(text, origin, ("analysis", "forecast_models"), err.what, err.todo) from err


def _sources(raw: object, text: str, origin: str) -> Iterator[SourceConfig]:
    if not isinstance(raw, list):
        raise _fault(text, origin, ("source",), "must be a list: write [[source]]")
    for position, table in enumerate(raw):
        at: Where = ("source", position)
        if not isinstance(table, Mapping) or not isinstance(table.get("kind"), str):
            raise _fault(text, origin, at, f"needs kind = one of {', '.join(SOURCE_KINDS)}")
        if table["kind"] not in SOURCE_KINDS:
            raise _fault(text, origin, (*at, "kind"), "unknown kind of source", _nearest(table["kind"], SOURCE_KINDS))
        own = {k: v for k, v in table.items() if k != "kind"}
        yield SourceConfig(kind=table["kind"], settings=own, origin=origin, text=text, at=at)


def _nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def _fault(text: str, origin: str, at: Where, why: str, todo: str = "") -> SettingsError:
    name = ".".join(str(step) if isinstance(step, str) else f"{step + 1}" for step in at)
    line = line_of(text, at)
    where = f"{origin}, line {line}" if line else origin
    return SettingsError(f"{where}: {name}: {why}", tried="reading the configuration", todo=todo)


def _toml(text: str, origin: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        raise SettingsError(f"{origin} is not TOML: {err}", todo="mend the line named above") from err


def _yaml(text: str, origin: str) -> dict[str, Any]:
    try:
        import yaml
    except ModuleNotFoundError as err:
        todo = "pip install 'gpuwatch-stack[cli]', or write it in TOML"
        raise MissingExtraError("reading a YAML configuration needs PyYAML", todo=todo) from err
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as err:
        told = " ".join(str(err).split())  # one line of an error, however the parser breaks it
        raise SettingsError(f"{origin} is not YAML: {told}", todo="mend the line named above") from err
    if raw is None:
        return {}
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise SettingsError(f"{origin} must be a table of keys", todo="see docs/configuration.md")
    return raw


_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""^\s*(?:-\s+)?["']?([A-Za-z0-9_.\-]+)["']?\s*[=:]""")


def line_of(text: str, at: Where) -> int:
    """1-based line of the key at `at`, of its table when the key is not written out, 0 when neither is found.

    A plain scan for people's eyes: it follows [table] and [[table]] headers, and in YAML the order of keys.
    """
    names = [step for step in at if isinstance(step, str)]
    number = next((step for step in at if isinstance(step, int)), 0)
    if not names:
        return 0
    headers, best, seen = [""], 0, -1
    for line, row in enumerate(text.splitlines(), start=1):
        header, key = _TABLE.match(row), _KEY.match(row)
        if header:
            headers = header[2].replace('"', "").split(".")
            seen += header[1] == "[[" and headers[0] == names[0]
            inside = headers == names[: len(headers)] and (header[1] == "[" or seen == number)
            best = line if inside else best
            if inside and headers == names:
                return line
        elif (
            key and key[1] == names[-1] and (headers in ([""], names[:-1])) and (seen in (-1, number) or len(names) < 2)
        ):
            return line
        elif key and key[1] == names[0] and headers == [""]:
            best = best or line
    return best
