"""A snapshot file as a source. Its age is the file's own: an old file is served as old."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpuwatch.errors import InputError, SourceError
from gpuwatch.model.codec import read_snapshot
from gpuwatch.model.snapshot import ClusterSnapshot, SourceHealth


class SnapshotFileSource:
    """Reads `path` anew at every read, so that a file that another program replaces is followed."""

    def __init__(self, path: Path | str, name: str | None = None) -> None:
        self._path = Path(path)
        self.name = name or f"file:{self._path.name}"

    def read(self, now: datetime) -> ClusterSnapshot:
        """The snapshot in the file. SourceError (unreachable, bad_answer) when there is none that can be read."""
        if not self._path.exists():
            raise SourceError(
                f"there is no snapshot file {self._path}",
                tried="opening it",
                todo="write one with: gpuwatch snapshot record --output-file FILE",
                code="unreachable",
            )
        try:
            snapshot = read_snapshot(self._path)
        except InputError as err:
            raise SourceError(err.what, tried=err.tried, todo=err.todo, code="bad_answer") from err
        health = SourceHealth(name=self.name, kind="file", ok=True, observed_at=snapshot.taken_at)
        # What the recording run said about its own sources stays: a part that was unknown then is unknown now.
        return replace(snapshot, sources=(health, *(s for s in snapshot.sources if s.name != self.name)))
