"""The fragmentation report: index, causes and shapes for the cluster, then per pool and per model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.booking import Booking
from gpuwatch.fit.capacity import Capacity
from gpuwatch.fit.columns import BoolArray, Columns, FloatArray, IntArray, columns_of
from gpuwatch.fragmentation.general import CAUSES
from gpuwatch.fragmentation.kernel import MixTable, cause_totals, fragment_per_shape, mix_table
from gpuwatch.model.cluster import UNKNOWN_MODEL
from gpuwatch.model.evaluation import FragmentationReport, FragmentationScope, ShapeFit
from gpuwatch.model.mix import DemandMix

NOTHING_FREE = "nothing is free"
NO_GPU_DEMAND = "no GPU demand known"


def fragmentation_report(booking: Booking, mix: DemandMix) -> FragmentationReport:
    """The report on `booking` for `mix`. Never raises on data; an index that cannot be told is None with a reason."""
    return report_on(columns_of(booking), mix)


def report_on(columns: Columns, mix: DemandMix) -> FragmentationReport:
    """The report on a columnar view."""
    table = table_of(columns, mix)
    stranded = Stranded.on(columns, table)
    return FragmentationReport(
        overall=stranded.overall(),
        scopes=(*stranded.pools(), *stranded.models(), *stranded.cells()),
        shapes=shape_fits(Capacity(columns), mix, table),
        mix_basis=mix.basis,
        mix_coverage_ratio=mix.coverage_ratio,
        excluded_mig_gpus=columns.mig_gpus,
    )


def table_of(columns: Columns, mix: DemandMix) -> MixTable:
    """The mix as a kernel table for these columns."""
    return mix_table(columns.models, [s.shape for s in mix.shapes], [s.share_ratio for s in mix.shapes])


@dataclass(frozen=True, slots=True)
class Stranded:
    """Free capacity and weighted fragments of each cell (one model in one pool), from which any scope is a sum.

    P pools by T models, the last of which is the unknown one.
    """

    columns: Columns
    table: MixTable
    free: IntArray  # (P, T) milligpu
    causes: FloatArray  # (4, P, T) in the order of CAUSES, weights as in the mix
    gpu_weight: float  # share of the mix that asks for GPUs

    @classmethod
    def on(cls, columns: Columns, table: MixTable) -> Stranded:
        """Runs the kernel over all nodes."""
        size = (len(columns.pools), len(columns.models) + 1)
        cell, count = _cell(columns), size[0] * size[1]
        free = np.bincount(cell.ravel(), weights=columns.left.ravel(), minlength=count)
        causes = cause_totals(table, columns.left, columns.model, columns.cpu_free, cell, count)
        return cls(
            columns=columns,
            table=table,
            free=free.astype(np.int64).reshape(size),
            causes=causes.reshape(len(CAUSES), *size),
            gpu_weight=float(table.weight.sum()),
        )

    def overall(self) -> FragmentationScope:
        """The whole cluster."""
        return self._scope(np.ones(self.free.shape, dtype=np.bool_))

    def pools(self) -> list[FragmentationScope]:
        """One scope per pool."""
        return [self._scope(self._part(pool=at), pool=name) for at, name in enumerate(self.columns.pools)]

    def models(self) -> list[FragmentationScope]:
        """One scope per known model."""
        return [self._scope(self._part(model=at), gpu_model=name) for at, name in enumerate(self.columns.models)]

    def cells(self) -> list[FragmentationScope]:
        """One scope per (pool, model) that has devices, sorted by name: the scopes whose capacities add up."""
        there = np.unique(_cell(self.columns)[self.columns.gpu_index >= 0]).tolist()
        names = (*self.columns.models, UNKNOWN_MODEL)
        places = (divmod(cell, len(names)) for cell in there)
        named = sorted((self.columns.pools[pool], names[model], pool, model) for pool, model in places)
        return [self._scope(self._part(p, m), pool=pool, gpu_model=model) for pool, model, p, m in named]

    def _part(self, pool: int | None = None, model: int | None = None) -> BoolArray:
        part = np.zeros(self.free.shape, dtype=np.bool_)
        part[slice(None) if pool is None else pool, slice(None) if model is None else model] = True
        return part

    def _scope(self, part: BoolArray, pool: str | None = None, gpu_model: str | None = None) -> FragmentationScope:
        """Sums over the cells of `part` (P, T)."""
        free = int(self.free[part].sum())
        cpu_only = free * self.table.cpu_only_weight
        known = self.gpu_weight > 0
        # The CPU-only class would put a floor under the index that no placement can lower, so the shares of the GPU
        # shapes are scaled to sum to 1 among themselves.
        sums = zip(CAUSES, self.causes, strict=True)
        by_cause = {cause: float(amounts[part].sum()) / self.gpu_weight for cause, amounts in sums} if known else {}
        stranded = sum(by_cause.values())
        published = stranded * self.gpu_weight + cpu_only
        empty_mix = not known and self.table.cpu_only_weight == 0
        return FragmentationScope(
            pool=pool,
            gpu_model=gpu_model,
            free_milligpu=free,
            stranded_milligpu=stranded,
            fragmentation_index=100 * stranded / free if free and known else None,
            fgd_ratio=published / free if free and not empty_mix else None,
            by_cause=by_cause,
            cpu_only_milligpu=cpu_only,
            reason=self._reason(free, known, part),
        )

    def _reason(self, free: int, known: bool, part: BoolArray) -> str | None:
        if not free:
            return NOTHING_FREE
        if not known:
            return NO_GPU_DEMAND
        rows = np.flatnonzero(~self.columns.cpu_known)
        inside = part.ravel()[_cell(self.columns, rows)]
        unknown = int(((self.columns.left[rows] * inside).sum(axis=1) > 0).sum())
        return f"CPU capacity of {unknown} node(s) is unknown and taken as enough" if unknown else None


def shape_fits(capacity: Capacity, mix: DemandMix, table: MixTable) -> tuple[ShapeFit, ...]:
    """Every shape of the mix, in its order: how many fit now, and the free capacity that it cannot take."""
    columns = capacity.columns
    stranded = np.full(len(mix.shapes), float(columns.left.sum()))  # a CPU-only shape can take no free GPU
    stranded[table.at] = fragment_per_shape(table, columns.left, columns.model, columns.cpu_free)
    return tuple(
        ShapeFit(
            shape=entry.shape,
            share_ratio=entry.share_ratio,
            fits_now=int(capacity.members(entry.shape).sum()),
            stranded_milligpu=float(stranded[at]),
        )
        for at, entry in enumerate(mix.shapes)
    )


def _cell(columns: Columns, rows: IntArray | slice = slice(None)) -> IntArray:
    """(rows, W) the cell of each device; padding lies in that of the unknown model."""
    models = len(columns.models)
    cell: IntArray = columns.pool[rows, None] * (models + 1) + np.where(
        columns.model[rows] < 0, models, columns.model[rows]
    )
    return cell
