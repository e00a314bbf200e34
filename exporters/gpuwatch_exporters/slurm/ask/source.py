"""What the exporter asks of Slurm, whoever answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

CALLS = ("nodes", "jobs", "partitions", "reservations")


class Answer(Protocol):
    """Rows of one call; `rest` (the answer's meta data and errors) is whole once the rows are read to their end."""

    rest: dict[str, Any]
    found: bool

    def rows(self, key: str) -> Iterator[Any]: ...


class Source(Protocol):
    """Commands or slurmrestd."""

    name: ClassVar[str]

    def ask(self, call: str, timeout_seconds: float) -> Answer:
        """The answer to one of CALLS. CallError when there is none."""
        ...

    def cluster(self, timeout_seconds: float) -> str:
        """The cluster's name, "" where this source cannot tell it. CallError as above."""
        ...

    def told(self) -> str:
        """One line for the landing page: what is asked."""
        ...

    def close(self) -> None:
        """Ends a call that is under way, as far as it can; from any thread."""
        ...
