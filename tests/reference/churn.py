"""The slow, obvious twin of replays with churn: at every question the free capacity is counted anew from who runs."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as made
from typing import Any

import numpy as np

from gpuwatch.fragmentation.kernel import fragment_of_nodes
from gpuwatch.placement.churn.stream import ChurnStream
from gpuwatch.placement.kernels.counts import NEVER
from gpuwatch.placement.kernels.parts import chance
from gpuwatch.placement.policy import PolicyContext, make_policy
from gpuwatch.placement.replay import Field


@dataclass
class Twin:
    """One run; after run() the dicts by job tell what happened, `log` how the cluster stood from each moment on."""

    field: Field
    stream: ChurnStream
    rules: Any
    policy: str
    seed: int
    order: Any
    spots: dict[int, list[tuple[int, tuple[int, ...]]]] = made(default_factory=dict)  # running job -> row, devices
    began: dict[int, int] = made(default_factory=dict)
    first_began: dict[int, int] = made(default_factory=dict)
    finished: dict[int, int] = made(default_factory=dict)
    left: dict[int, int] = made(default_factory=dict)
    lost: dict[int, int] = made(default_factory=dict)
    runs: list[tuple[int, int, int]] = made(default_factory=list)  # job, from, to
    log: list[tuple[int, float, float, int, int]] = made(default_factory=list)
    first_rows: dict[int, list[int]] = made(default_factory=dict)
    draws: int = 0

    def run(self) -> None:
        made_policy = make_policy(self.policy, PolicyContext(mix=self.field.table, seed=self.seed))
        self._policy = made_policy
        self._waiting: set[int] = set()
        self._hopeless: set[int] = set()  # kinds that fitted nowhere since anything was given back
        self.left = dict(enumerate(self.stream.length.tolist()))
        arrivals = self.stream.arrival.tolist()
        moments = set(arrivals)
        while True:
            ends = {self.began[job] + self.left[job] for job in self.spots}
            coming = [t for t in moments | ends if t >= 0]
            now = min(coming, default=self.rules.end)
            if now >= self.rules.end:
                return
            moments.discard(now)
            for job in sorted(job for job in self.spots if self.began[job] + self.left[job] == now):
                self.runs.append((job, self.began.pop(job), now))
                self.finished[job], self.left[job] = now, 0
                del self.spots[job]
                self._hopeless.clear()
            self._waiting |= {job for job, t in enumerate(arrivals) if t == now and self._possible(job)}
            self._serve(now)
            self._note(now)

    # -- the queue ----------------------------------------------------------------------------------------------------

    def _kind(self, job: int):
        return self.stream.kinds[self.stream.kind[job]]

    def _possible(self, job: int) -> bool:
        """Whether the empty cluster has room for all members, counted one after the other."""
        kind, columns, placed = self._kind(job), self._free({}), 0
        for row in range(len(columns.names)):
            while placed < kind.members and self._fits_in(kind.shape, row, columns):
                columns.take(row, kind.shape, self._lowest(kind.shape, row, columns))
                placed += 1
        return placed == kind.members

    def _serve(self, now: int) -> None:
        looked = 0
        for rank in sorted({kind.rank for kind in self.stream.kinds}):
            for job in sorted(job for job in self._waiting if self._kind(job).rank == rank):
                if looked >= self.rules.depth:
                    return
                if not self._start(job, now):
                    looked += 1
                    if self.rules.fifo:
                        return

    def _start(self, job: int, now: int) -> bool:
        kind = self._kind(job)
        mine: list[tuple[int, tuple[int, ...]]] = []
        gone: list[int] = []
        for _ in range(kind.members):
            running = {other: spots for other, spots in self.spots.items() if other not in gone}
            spot = self._best(kind.shape, running, mine, draw=self.draws + len(mine))
            if spot is None and self.rules.preemption:
                row, victims = self._cheapest(kind, running, mine, now)
                gone += victims
                running = {other: spots for other, spots in self.spots.items() if other not in gone}
                if row is not None:
                    spot = self._best(kind.shape, running, mine, draw=self.draws + len(mine), only=row)
            if spot is None:
                self._hopeless.add(int(self.stream.kind[job]))
                return False
            mine.append(spot)
        self.draws += len(mine)
        for other in gone:
            self._send_away(other, now)
        self.spots[job], self.began[job] = mine, now
        self.first_began.setdefault(job, now)
        self.first_rows.setdefault(job, [row for row, _ in mine])
        self._waiting.discard(job)
        return True

    def _send_away(self, job: int, now: int) -> None:
        lost = self._lost(job, now)
        self.runs.append((job, self.began[job], now))
        self.left[job] -= now - self.began.pop(job) - lost
        self.lost[job] = self.lost.get(job, 0) + lost
        del self.spots[job]
        self._waiting.add(job)
        self._hopeless.clear()

    def _lost(self, job: int, now: int) -> int:
        done = now - self.began[job]
        return done % self.rules.checkpoint if self.rules.checkpoint else done

    def _cheapest(self, kind, running, mine, now: int):
        options = []
        for row in range(len(self.field.columns.names)):
            here = [
                job
                for job, spots in running.items()
                if any(at == row for at, _ in spots) and self._kind(job).rank > kind.rank and self._kind(job).evictable
            ]
            price = {job: self._lost(job, now) * max(1, self._kind(job).milligpu) for job in here}
            chosen: list[int] = []
            for job in sorted(here, key=lambda job: (price[job], job)):
                chosen.append(job)
                if self._fits_without(kind.shape, row, running, mine, chosen):
                    break
            if not self._fits_without(kind.shape, row, running, mine, chosen):
                continue
            for job in list(reversed(chosen)):
                fewer = [other for other in chosen if other != job]
                if self._fits_without(kind.shape, row, running, mine, fewer):
                    chosen = fewer
            options.append((sum(price[job] for job in chosen), len(chosen), int(self.order[row]), row, chosen))
        if not options:
            return None, []
        *_, row, chosen = min(options, key=lambda option: option[:3])
        return row, chosen

    def _fits_without(self, shape, row: int, running, mine, gone) -> bool:
        """Whether it fits on `row` when the members that the jobs `gone` have there are away."""
        rest = {job: [spot for spot in spots if job not in gone or spot[0] != row] for job, spots in running.items()}
        return self._fits_in(shape, row, self._free(rest, [(shape, spot) for spot in mine]))

    # -- the cluster --------------------------------------------------------------------------------------------------

    def _free(self, running, mine=()):
        columns = self.field.columns.copy()
        for job, spots in running.items():
            for row, devices in spots:
                columns.take(row, self._kind(job).shape, devices)
        for shape, (row, devices) in mine:
            columns.take(row, shape, devices)
        return columns

    def _roomy(self, shape, row: int, columns) -> list[int]:
        return [
            device
            for device in range(columns.left.shape[1])
            if columns.usable[row, device]
            and columns.left[row, device] >= shape.milligpu_per_gpu
            and (not shape.gpu_models or columns.models[columns.model[row, device]] in shape.gpu_models)
        ]

    def _fits_in(self, shape, row: int, columns) -> bool:
        return (
            bool(columns.open[row])
            and columns.cpu_free[row] >= shape.cpu_millicores
            and columns.memory_free[row] >= shape.memory_bytes
            and (shape.gpus == 0 or len(self._roomy(shape, row, columns)) >= shape.gpus)
        )

    def _lowest(self, shape, row: int, columns) -> tuple[int, ...]:
        return tuple(self._roomy(shape, row, columns)[: shape.gpus]) if shape.gpus else ()

    def _best(self, shape, running, mine, draw, only=None):
        columns = self._free(running, [(shape, spot) for spot in mine])
        rows = [row for row in range(len(columns.names)) if self._fits_in(shape, row, columns) and only in (None, row)]
        level = self._policy.held(columns, shape) if only is None else np.zeros(len(columns.names), dtype=int)
        rows = [row for row in rows if level[row] < NEVER]
        if not rows:
            return None
        ranking = self._policy.rank(columns, shape, np.array(rows), draw)

        def turn(at: int) -> int:
            row = rows[at]
            return chance(self.seed, draw, row) if self._policy.random_ties else int(self.order[row])

        at = min(range(len(rows)), key=lambda at: (int(level[rows[at]]), -int(ranking.score[at]), turn(at)))
        device = int(ranking.device[at])
        return rows[at], (self._lowest(shape, rows[at], columns) if device < 0 else (device,))

    # -- measures -----------------------------------------------------------------------------------------------------

    def _note(self, now: int) -> None:
        columns = self._free(self.spots)
        fragment = fragment_of_nodes(self.field.table, columns.left, columns.model, columns.cpu_free).sum()
        idle = int(columns.left.sum())
        waiting = sum(self._kind(job).milligpu for job in self._waiting)
        stuck = 0
        in_order = sorted(self._waiting, key=lambda job: (self._kind(job).rank, job))
        for job in in_order[: self.rules.depth]:
            asked = self._kind(job).milligpu
            if 0 < asked <= idle - stuck and int(self.stream.kind[job]) in self._hopeless:
                stuck += asked
        self.log.append((now, idle, float(fragment), waiting, stuck))

    def means(self) -> dict[str, list[float]]:
        """Time-weighted sums in each of the equal parts, from the log, one millisecond range after the other."""
        capacity = self.field.capacity_milligpu
        start = self._free({})
        first = (
            0,
            int(start.left.sum()),
            float(fragment_of_nodes(self.field.table, start.left, start.model, start.cpu_free).sum()),
            0,
            0,
        )
        entries = [first, *self.log]
        parts = 100
        width = self.rules.end // parts
        out = {name: [0.0] * parts for name in ("used", "idle", "fragment", "waiting", "stuck")}
        for at, (since, idle, fragment, waiting, stuck) in enumerate(entries):
            until = entries[at + 1][0] if at + 1 < len(entries) else self.rules.end
            for part in range(parts):
                time = max(0, min(until, (part + 1) * width) - max(since, part * width))
                amounts = {
                    "used": capacity - idle,
                    "idle": idle,
                    "fragment": fragment,
                    "waiting": waiting,
                    "stuck": stuck,
                }
                for name, amount in amounts.items():
                    out[name][part] += amount * time
        return out
