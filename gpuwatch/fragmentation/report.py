"""The fragmentation report: index, causes and shapes for the cluster, then per pool and per model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.booking import Booking
from gpuwatch.fit.columns import BoolArray, Columns, FloatArray, columns_of
from gpuwatch.fit.fleet_fit import members_that_fit
from gpuwatch.fragmentation.kernel import CAUSES, MixTable, fragment_by_cause, fragment_per_shape, mix_table
from gpuwatch.model.cluster import UNKNOWN_MODEL
from gpuwatch.model.evaluation import FragmentationReport, FragmentationScope, ShapeFit
from gpuwatch.model.mix import DemandMix

NOTHING_FREE = "nothing is free"
NO_GPU_DEMAND = "no GPU demand known"

_CHUNK_NODES = 2048  # bounds the (nodes, devices, groups) arrays: tens of MB whatever the size of the fleet


def fragmentation_report(booking: Booking, mix: DemandMix) -> FragmentationReport:
    """The report on `booking` for `mix`. Never raises on data; an index that cannot be told is None with a reason."""
    columns = columns_of(booking)
    table = table_of(columns, mix)
    stranded = Stranded.on(columns, table)
    pools = [stranded.scope(columns.pool[:, None] == at, pool=name) for at, name in enumerate(columns.pools)]
    models = [stranded.scope(columns.model == at, gpu_model=name) for at, name in enumerate(columns.models)]
    return FragmentationReport(
        overall=stranded.scope(np.ones(1, dtype=np.bool_)),
        scopes=(*pools, *models, *stranded.cells()),
        shapes=shape_fits(columns, mix, table),
        mix_basis=mix.basis,
        mix_coverage_ratio=mix.coverage_ratio,
        excluded_mig_gpus=columns.mig_gpus,
    )


def table_of(columns: Columns, mix: DemandMix) -> MixTable:
    """The mix as a kernel table for these columns."""
    return mix_table(columns.models, [s.shape for s in mix.shapes], [s.share_ratio for s in mix.shapes])


@dataclass(frozen=True, slots=True)
class Stranded:
    """Weighted fragments per device, from which any scope is a masked sum."""

    columns: Columns
    table: MixTable
    causes: dict[str, FloatArray]  # (N, W), weights as in the mix
    gpu_weight: float  # share of the mix that asks for GPUs

    @classmethod
    def on(cls, columns: Columns, table: MixTable) -> Stranded:
        """Runs the kernel over all nodes, a chunk at a time."""
        causes = {cause: np.zeros(columns.left.shape) for cause in CAUSES}
        for start in range(0, len(columns.names), _CHUNK_NODES):
            rows = slice(start, start + _CHUNK_NODES)
            part = fragment_by_cause(table, columns.left[rows], columns.model[rows], columns.cpu_free[rows])
            for cause in CAUSES:
                causes[cause][rows] = part[cause]
        return cls(columns, table, causes, float(table.weight.sum()))

    def scope(self, mask: BoolArray, pool: str | None = None, gpu_model: str | None = None) -> FragmentationScope:
        """Sums over the devices under `mask` (broadcast to (N, W))."""
        free = int((self.columns.left * mask).sum())
        cpu_only = free * self.table.cpu_only_weight
        known = self.gpu_weight > 0
        # The CPU-only class would put a floor under the index that no placement can lower, so the shares of the GPU
        # shapes are scaled to sum to 1 among themselves.
        by_cause = {c: float((part * mask).sum()) / self.gpu_weight for c, part in self.causes.items()} if known else {}
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
            reason=self._reason(free, known, mask),
        )

    def cells(self) -> list[FragmentationScope]:
        """One scope per (pool, model) that has devices, sorted by name: the scopes whose capacities add up."""
        pool, model = np.broadcast_arrays(self.columns.pool[:, None], self.columns.model)
        present = self.columns.gpu_index >= 0
        there = np.unique(np.stack([pool[present], model[present]]), axis=1).T.tolist()
        named = ((self.columns.pools[p], self.columns.models[m] if m >= 0 else UNKNOWN_MODEL, p, m) for p, m in there)
        return [self.scope((pool == p) & (model == m) & present, pool=a, gpu_model=b) for a, b, p, m in sorted(named)]

    def _reason(self, free: int, known: bool, mask: BoolArray) -> str | None:
        if not free:
            return NOTHING_FREE
        if not known:
            return NO_GPU_DEMAND
        unknown = int(((self.columns.left * mask).sum(axis=1) > 0)[~self.columns.cpu_known].sum())
        return f"CPU capacity of {unknown} node(s) is unknown and taken as enough" if unknown else None


def shape_fits(columns: Columns, mix: DemandMix, table: MixTable) -> tuple[ShapeFit, ...]:
    """Every shape of the mix, in its order: how many fit now, and the free capacity that it cannot take."""
    stranded = np.full(len(mix.shapes), float(columns.left.sum()))  # a CPU-only shape can take no free GPU
    stranded[table.at] = 0.0
    for start in range(0, len(columns.names), _CHUNK_NODES):
        rows = slice(start, start + _CHUNK_NODES)
        stranded[table.at] += fragment_per_shape(table, columns.left[rows], columns.model[rows], columns.cpu_free[rows])
    return tuple(
        ShapeFit(
            shape=entry.shape,
            share_ratio=entry.share_ratio,
            fits_now=int(members_that_fit(columns, entry.shape).sum()),
            stranded_milligpu=float(stranded[at]),
        )
        for at, entry in enumerate(mix.shapes)
    )
