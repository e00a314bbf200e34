"""What the daemon remembers, written and read. Every fault is a StoreError, which leaves the daemon running."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, delete, event, func, insert, select, update
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import StaticPool

from gpuwatch.errors import SettingsError
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.history import DemandSeries, History
from gpuwatch.model.units import HOUR_SECONDS
from gpuwatch.store.errors import StoreError, StoreGoneError, told
from gpuwatch.store.tables import SCHEMA_VERSION, advice_seen, demand_hours, evaluations, meta, metadata

_BUSY_SECONDS = 5
_DAY_SECONDS = 86400


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """Headline numbers of one recorded evaluation, and all of it where the document is still kept."""

    id: str
    recorded_at: datetime
    snapshot_taken_at: datetime
    installed_milligpu: int | None
    allocated_milligpu: int | None
    free_milligpu: int | None
    fragmentation_index: float | None
    recommendations: int
    evaluation: Evaluation | None


class Store:
    """What one cluster's daemon remembers. Made by open_store()."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        cluster: str,
        retention_days: int,
        keep_evaluations: int,
        file: Path | None = None,
    ) -> None:
        self._engine = engine
        self._file = file  # None: a server, or memory
        self._opened = _identity(file)
        self._keep_seconds = retention_days * _DAY_SECONDS
        self._keep_evaluations = keep_evaluations
        self.name = name
        self.cluster = cluster

    def record(self, evaluation: Evaluation, demand: dict[tuple[str, str], float], at: datetime) -> None:
        """Adds one evaluation and the demand it saw, (pool, kind) -> GPUs, and forgets what is too old.

        A key seen before that is absent from `demand` is a reading of 0: the cluster was observed, nothing asked.
        """
        with self._working("recording an evaluation"), self._engine.begin() as db:
            known = db.execute(
                select(demand_hours.c.pool, demand_hours.c.kind)
                .where(demand_hours.c.cluster == self.cluster)
                .distinct()
            )
            values = {(row.pool, row.kind): 0.0 for row in known} | demand
            hour = _hour(at)
            for (pool, kind), gpus in values.items():
                _add_sample(db, self.cluster, hour, pool, kind, gpus)
            db.execute(insert(evaluations), [_headline(evaluation, self.cluster, at)])
            self._forget(db, at)

    def backfill(self, history: History) -> int:
        """Adds hourly means for hours of which nothing is known; returns how many. None values are left out."""
        added = 0
        with self._working("filling in the demand before the first evaluation"), self._engine.begin() as db:
            known = {
                (row.hour_at, row.pool, row.kind)
                for row in db.execute(select(demand_hours).where(demand_hours.c.cluster == self.cluster))
            }
            for series in history.series:
                rows = [
                    {"cluster": self.cluster, "hour_at": at, "pool": series.pool, "kind": series.kind}
                    | {"gpus_sum": sum(gpus) / len(gpus), "samples": 1}
                    for at, gpus in _by_hour(series).items()
                    if (at, series.pool, series.kind) not in known
                ]
                if rows:
                    db.execute(insert(demand_hours), rows)
                added += len(rows)
        return added

    def history(self, before: datetime, hours: int = 24 * 28) -> History:
        """Hourly means of the `hours` whole hours that end at or before `before`. An hour without samples is None."""
        end = _hour(before)
        start = end - hours * HOUR_SECONDS
        found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        with self._working("reading the demand history"), self._engine.connect() as db:
            for row in db.execute(
                select(demand_hours).where(
                    demand_hours.c.cluster == self.cluster,
                    demand_hours.c.hour_at >= start,
                    demand_hours.c.hour_at < end,
                )
            ):
                found[row.pool, row.kind][row.hour_at] = row.gpus_sum / row.samples
        if not found:
            return History()
        first = min(min(values) for values in found.values())
        grid = range(first, end, HOUR_SECONDS)
        return History(
            series=tuple(
                DemandSeries(
                    pool=pool,
                    kind=kind,
                    start_at=datetime.fromtimestamp(first, UTC),
                    step_seconds=HOUR_SECONDS,
                    values=tuple(values.get(at) for at in grid),
                )
                for (pool, kind), values in sorted(found.items())
            )
        )

    def latest(self, limit: int = 1) -> list[EvaluationRow]:
        """The newest evaluations, newest first."""
        query = select(evaluations).where(evaluations.c.cluster == self.cluster)
        with self._working("reading evaluations"), self._engine.connect() as db:
            rows = list(db.execute(query.order_by(evaluations.c.row.desc()).limit(limit)))
        return [_row(row) for row in rows]

    def seen(
        self, ids: Iterable[str], at: datetime, known: Mapping[str, datetime] | None = None
    ) -> dict[str, datetime]:
        """When each piece of advice was first given. Advice that was gone for a day counts as new.

        known: what the caller remembers of advice that this store may not have been told of.
        """
        now = int(at.timestamp())
        told_before = {i: int(first.timestamp()) for i, first in (known or {}).items()}
        with self._working("remembering when advice was first given"), self._engine.begin() as db:
            kept = told_before | {
                row.id: row.first_seen_at
                for row in db.execute(
                    select(advice_seen).where(
                        advice_seen.c.cluster == self.cluster, advice_seen.c.last_seen_at >= now - _DAY_SECONDS
                    )
                )
            }
            wanted = list(dict.fromkeys(ids))
            if wanted:
                db.execute(
                    delete(advice_seen).where(advice_seen.c.cluster == self.cluster, advice_seen.c.id.in_(wanted))
                )
                rows = [
                    {"cluster": self.cluster, "id": i, "first_seen_at": kept.get(i, now), "last_seen_at": now}
                    for i in wanted
                ]
                db.execute(insert(advice_seen), rows)
        return {i: datetime.fromtimestamp(kept.get(i, now), UTC) for i in wanted}

    def close(self) -> None:
        """Gives the connections back; the store cannot be used afterwards."""
        self._engine.dispose()

    @contextmanager
    def _working(self, doing: str) -> Iterator[None]:
        # SQLite goes on writing to a file that was removed or replaced, where nobody will ever find it again.
        if _identity(self._file) != self._opened:
            raise StoreGoneError(
                f"the file of the store {self.name} was removed or replaced while in use",
                tried=doing,
                todo="nothing: the file that is there now is opened, or a new one made, and filled with what is known",
            )
        with told(doing, self.name):
            yield

    def _forget(self, db: Connection, at: datetime) -> None:
        oldest = int(at.timestamp()) - self._keep_seconds
        db.execute(delete(demand_hours).where(demand_hours.c.hour_at < oldest, demand_hours.c.cluster == self.cluster))
        db.execute(delete(evaluations).where(evaluations.c.recorded_at < oldest, evaluations.c.cluster == self.cluster))
        db.execute(
            delete(advice_seen).where(advice_seen.c.last_seen_at < oldest, advice_seen.c.cluster == self.cluster)
        )
        newest = (
            select(evaluations.c.row)
            .where(evaluations.c.cluster == self.cluster)
            .order_by(evaluations.c.row.desc())
            .limit(self._keep_evaluations)
        )
        lowest = db.execute(select(func.min(newest.subquery().c.row))).scalar()
        db.execute(
            update(evaluations)
            .where(
                evaluations.c.cluster == self.cluster, evaluations.c.row < lowest, evaluations.c.document.is_not(None)
            )
            .values(document=None)
        )


def checked_url(url: str) -> URL:
    """`url` when it is a database URL whose driver is installed, else SettingsError. Nothing is opened."""
    try:
        parsed = make_url(url)
    except ArgumentError as err:
        raise SettingsError(f"[store] url {url!r} is no database URL", todo="write sqlite:////path/to/file.db") from err
    name = parsed.render_as_string(hide_password=True)
    try:
        parsed.get_dialect().import_dbapi()
    except (NoSuchModuleError, ImportError) as err:
        raise SettingsError(f"no driver for {name}: {err}", todo="install its driver, or use sqlite") from err
    return parsed


def open_store(url: str, *, cluster: str = "default", retention_days: int = 90, keep_evaluations: int = 50) -> Store:
    """Opens (and makes, with its folder) the store at a SQLAlchemy `url`; StoreError or SettingsError if it cannot."""
    parsed = checked_url(url)
    name = parsed.render_as_string(hide_password=True)
    is_file = parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:")
    if is_file and parsed.database and not parsed.database.startswith("file:"):  # file: is SQLite's own kind of URL
        try:
            Path(parsed.database).expanduser().parent.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            todo = "check the path of [store] url and its permissions"
            raise StoreError(f"cannot make the folder of {name}: {err}", todo=todo, code="store_unreachable") from err
    engine = create_engine(url, **_options(parsed.get_backend_name(), parsed.database))
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _tune_sqlite)
    with told("opening it", name), engine.begin() as db:
        metadata.create_all(db)
        found = db.execute(select(meta.c.value).where(meta.c.key == "schema_version")).scalar()
        if found is None:
            db.execute(insert(meta).values(key="schema_version", value=str(SCHEMA_VERSION)))
        elif found != str(SCHEMA_VERSION):
            what = f"the store {name} has layout {found}, this release reads {SCHEMA_VERSION}"
            raise StoreError(
                what, todo="give it another [store] url, or use the release that wrote it", code="store_version"
            )
    file = Path(parsed.database) if is_file and parsed.database and not parsed.database.startswith("file:") else None
    return Store(engine, name, cluster, retention_days, keep_evaluations, file)


def _identity(file: Path | None) -> tuple[int, int] | None:
    """What tells this file from another of its name; None: there is no file."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found else None


def _options(backend: str, database: str | None) -> dict[str, Any]:
    if backend != "sqlite":
        return {"pool_pre_ping": True}
    options: dict[str, Any] = {"connect_args": {"timeout": _BUSY_SECONDS, "check_same_thread": False}}
    # A database in memory lives in one connection: a second one would be a second, empty database.
    return options | ({"poolclass": StaticPool} if not database or database == ":memory:" else {})


def _tune_sqlite(connection: Any, _record: Any) -> None:
    # Readers do not wait for the writer; after a power cut the last seconds may be lost, never the file.
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _add_sample(db: Connection, cluster: str, hour: int, pool: str, kind: str, gpus: float) -> None:
    table = demand_hours
    changed = db.execute(
        update(table)
        .where(table.c.cluster == cluster, table.c.hour_at == hour, table.c.pool == pool, table.c.kind == kind)
        .values(gpus_sum=table.c.gpus_sum + gpus, samples=table.c.samples + 1)
    )
    if not changed.rowcount:
        row = {"cluster": cluster, "hour_at": hour, "pool": pool, "kind": kind, "gpus_sum": gpus, "samples": 1}
        db.execute(insert(table), [row])


def _hour(at: datetime) -> int:
    return int(at.timestamp()) // HOUR_SECONDS * HOUR_SECONDS


def _by_hour(series: DemandSeries) -> dict[int, list[float]]:
    hours: dict[int, list[float]] = defaultdict(list)
    for step, gpus in enumerate(series.values):
        if gpus is not None:
            hours[_hour(series.start_at + timedelta(seconds=step * series.step_seconds))].append(gpus)
    return hours


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Evaluation)


def _headline(evaluation: Evaluation, cluster: str, at: datetime) -> dict[str, Any]:
    fall, report = evaluation.waterfall, evaluation.fragmentation
    return {
        "cluster": cluster,
        "id": evaluation.id,
        "recorded_at": int(at.timestamp()),
        "taken_at": evaluation.snapshot_taken_at.isoformat(),
        "installed_milligpu": fall.installed_milligpu if fall else None,
        "allocated_milligpu": fall.allocated_milligpu if fall else None,
        "free_milligpu": fall.free_milligpu if fall else None,
        "fragmentation_index": report.overall.fragmentation_index if report else None,
        "recommendations": len(evaluation.recommendations),
        "document": _adapter().dump_json(evaluation).decode(),
    }


def _row(row: Any) -> EvaluationRow:
    return EvaluationRow(
        id=row.id,
        recorded_at=datetime.fromtimestamp(row.recorded_at, UTC),
        snapshot_taken_at=datetime.fromisoformat(row.taken_at),
        installed_milligpu=row.installed_milligpu,
        allocated_milligpu=row.allocated_milligpu,
        free_milligpu=row.free_milligpu,
        fragmentation_index=row.fragmentation_index,
        recommendations=row.recommendations,
        evaluation=_adapter().validate_json(row.document) if row.document else None,
    )
