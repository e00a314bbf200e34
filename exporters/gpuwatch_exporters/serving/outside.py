"""Options from outside the command line: environment variables and one TOML file, for every option of a parser.

A flag wins over the environment, the environment over the file, the file over the default. What comes from outside is
set as the parser's default before it reads the command line, so that each option is checked in one place.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.serving.options import long_options

log = logging.getLogger(__name__)
PREFIX = "GPUWATCH_EXPORTER_"
# Kubernetes describes each service of the namespace in variables of its own. Those of a service called
# gpuwatch-exporter begin as ours do and are no options.
_SERVICE_LINK = re.compile(r"(.*_)?(SERVICE_(HOST|PORT)(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def fill_defaults(
    parser: argparse.ArgumentParser, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> None:
    """Sets the parser's defaults from the environment and the file that `arguments` or the environment name by
    --config. A parser without --config is left alone. SettingsError names the variable, or the file, line and key."""
    options = long_options(parser)
    if "config" not in options:
        return
    environment = os.environ if environment is None else environment
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--config", type=Path, default=environment.get(PREFIX + "CONFIG") or None)
    try:
        file: Path | None = first.parse_known_args(arguments)[0].config
    except argparse.ArgumentError:
        return  # --config without a value: the real parser tells it
    given = _given(parser, arguments)
    if file is not None:
        _from_file(options, Path(file), given)
    _from_environment(options, environment, given)


def _given(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> set[argparse.Action]:
    """The options on the command line, and those that one of them excludes. Their defaults stay as they are: a list
    would be appended to, and of two that exclude each other both would be set."""
    words = {word.partition("=")[0] for word in arguments}
    found = {action for action in parser._actions if words.intersection(action.option_strings)}
    for group in parser._mutually_exclusive_groups:
        if found.intersection(group._group_actions):
            found.update(group._group_actions)
    return found


def variable(option: str) -> str:
    """`web.config.file` -> GPUWATCH_EXPORTER_WEB_CONFIG_FILE."""
    return PREFIX + re.sub(r"[^a-z0-9]", "_", option.lower()).upper()


def _from_environment(
    options: Mapping[str, argparse.Action], environment: Mapping[str, str], given: Set[argparse.Action]
) -> None:
    by_variable = {variable(name): action for name, action in options.items()}
    for name in sorted(environment):
        if not name.startswith(PREFIX):
            continue
        if name in by_variable:
            _set(by_variable[name], environment[name], name, given)
        elif not _SERVICE_LINK.fullmatch(name.removeprefix(PREFIX)):
            log.warning("%s names no option%s", name, _near(name, by_variable))


def _from_file(options: Mapping[str, argparse.Action], file: Path, given: Set[argparse.Action]) -> None:
    import tomllib  # only who has a file pays for it

    try:
        text = file.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as err:
        raise SettingsError(f"{file}: {err.strerror or err}", todo="name a file that can be read in --config") from err
    except ValueError as err:  # also what is no UTF-8
        raise SettingsError(f"{file}: {err}", todo="write it as TOML: option = value") from err
    for key, held in _flat(tables):
        line = _line_of(text, key)
        where = f"{file}{f' line {line}' if line else ''}: {key}"
        if key not in options or key == "config":
            raise SettingsError(
                f"{where}: no such option{_near(key, options)}", todo="run with --help for the options, without dashes"
            )
        _set(options[key], held, where, given)


def _set(action: argparse.Action, held: object, where: str, given: Set[argparse.Action]) -> None:
    """Makes `held` the option's default, read as the option itself would read it; what is given is only checked."""
    found: object
    if action.nargs == 0:
        found = _switch(action, held, where)
    elif isinstance(action, argparse._AppendAction) or action.nargs not in (None, "?"):
        parts = held if isinstance(held, list) else [part.strip() for part in str(held).split(",")]
        found = [_one(action, part, where) for part in parts if part != ""]
    else:
        found = _one(action, held, where)
    if action not in given:
        action.default, action.required = found, False


def _switch(action: argparse.Action, held: object, where: str) -> object:
    text = str(held).lower()
    if text not in _YES + _NO:
        raise SettingsError(f"{where}: {held!r} is neither true nor false")
    if isinstance(action, argparse.BooleanOptionalAction):
        return text in _YES
    return action.const if text in _YES else action.default


def _one(action: argparse.Action, held: object, where: str) -> Any:
    if isinstance(held, (list, dict, bool)):
        raise SettingsError(f"{where}: {held!r} is not one value")
    convert = action.type if callable(action.type) else str
    try:
        found = convert(str(held))
    except (argparse.ArgumentTypeError, TypeError, ValueError) as err:
        raise SettingsError(f"{where}: {err}") from err
    if action.choices is not None and found not in action.choices:
        raise SettingsError(f"{where}: {held!r} is none of {', '.join(map(str, action.choices))}")
    return found


def _flat(table: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """The values under their dotted keys: an option such as web.config.file reads as tables in TOML."""
    out: list[tuple[str, Any]] = []
    for key, held in table.items():
        out += _flat(held, f"{above}{key}.") if isinstance(held, dict) else [(above + key, held)]
    return out


def _line_of(text: str, wanted: str) -> int | None:
    """The line on which the dotted key is set, counted from 1; None when it is written in a way not known here."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
            table = _bare(head[1]) + "."
        elif (pair := re.match(r"\s*([^=#]+?)\s*=", line)) and table + _bare(pair[1]) == wanted:
            return number
    return None


def _bare(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _near(name: str, known: Mapping[str, object]) -> str:
    import difflib  # only for who made a mistake

    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""
