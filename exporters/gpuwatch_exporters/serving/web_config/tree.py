"""YAML as nodes that know their line, so that each fault can name it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpuwatch.errors import MissingExtraError, SettingsError

_NULL, _BOOL = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"


def extra_missing(module: str) -> MissingExtraError:
    """What is raised when a library of the extra is not there."""
    return MissingExtraError(
        f"a web configuration file needs {module}, which is not installed",
        todo="pip install 'gpuwatch-stack[exporter]'",
    )


class Tree:
    """One node of the file, and the key it stands under."""

    def __init__(self, file: Path, node: Any, key: str) -> None:
        self._file = file
        self._node = node
        self._key = key

    @classmethod
    def of(cls, file: Path) -> Tree:
        """The root of `file`. SettingsError when it cannot be read or is no YAML."""
        try:
            import yaml
        except ImportError as err:
            raise extra_missing("PyYAML") from err
        try:
            node = yaml.compose(file.read_text(encoding="utf-8"), yaml.SafeLoader)
        except OSError as err:
            raise SettingsError(f"{file}: {err.strerror or err}", todo="check --web.config.file") from err
        except (yaml.YAMLError, ValueError) as err:
            raise SettingsError(f"{file} is no YAML: {' '.join(str(err).split())}") from err
        return cls(file, node, "")

    def error(self, told: str) -> SettingsError:
        """A fault of this node, to be raised."""
        line = f" line {self._node.start_mark.line + 1}" if self._node is not None else ""
        return SettingsError(f"{self._file}{line}: {f'{self._key}: ' if self._key else ''}{told}")

    @property
    def empty(self) -> bool:
        """Nothing stands here."""
        return self._node is None or self._node.tag == _NULL or self._node.value == []

    def mapping(self, *known: str) -> dict[str, Tree]:
        """The nodes by key; without `known` any key may stand. A key twice or of another name is a fault."""
        if self.empty:
            return {}
        if self._node.id != "mapping":
            raise self.error("should be a mapping")
        out: dict[str, Tree] = {}
        for key, node in self._node.value:
            name = str(key.value)
            at = Tree(self._file, key, f"{self._key}.{name}" if self._key else name)
            if known and name not in known:
                raise at.error(f"no such setting; known here: {', '.join(sorted(known))}")
            if name in out:
                raise at.error("set twice")
            out[name] = Tree(self._file, node, at._key)
        return out

    def text(self) -> str:
        """The scalar as written; "" for nothing."""
        if self.empty:
            return ""
        if self._node.id != "scalar":
            raise self.error("should be one value")
        return str(self._node.value)

    def texts(self) -> list[str]:
        """The scalars of a list."""
        if self.empty:
            return []
        if self._node.id != "sequence":
            raise self.error("should be a list")
        return [Tree(self._file, node, self._key).text() for node in self._node.value]

    def switch(self) -> bool:
        """true or false."""
        if self._node is None or self._node.tag != _BOOL:
            raise self.error("should be true or false")
        return self.text().lower() in ("true", "yes", "on")

    def one_of(self, allowed: Iterable[str], why: str = "") -> str:
        """The scalar, which has to be one of these."""
        text = self.text()
        if text not in allowed:
            raise self.error(f"{text!r} is none of {', '.join(allowed)}{f' ({why})' if why else ''}")
        return text

    def names_among(self, allowed: Iterable[str], why: str) -> list[str]:
        """The scalars of a list, each of which has to be one of these."""
        names = self.texts()
        for name in names:
            if name not in allowed:
                raise self.error(f"{name!r}: {why}")
        return names
