"""The fragmentation index with its causes, the shapes that still fit, and the same per pool and model."""

from __future__ import annotations

from gpuwatch.model.evaluation import Evaluation, FragmentationReport, FragmentationScope
from gpuwatch.model.units import MILLI
from gpuwatch.render.documents import fragmentation_document
from gpuwatch.render.report import Bar, Cell, Chart, Column, Lines, Report, Row, Section, Table
from gpuwatch.render.reports.waterfall import scope_name, waterfall_sections
from gpuwatch.render.text import number

_CAUSES = {
    "no_access": "the shape accepts no such model",
    "gpu_lacking": "not enough GPU left on one device or node",
    "cpu_lacking": "GPU enough, but CPU or memory beside it is gone",
    "both_lacking": "neither GPU nor CPU or memory is enough",
}
_SCOPE_COLUMNS = (
    Column("scope", "Pool or model"),
    Column("fragmentation_index", "Index", "0-100", digits=1),
    Column("free_gpus", "Free", "GPUs"),
    Column("stranded_gpus", "Stranded", "GPUs", digits=2),
    Column("fgd_ratio", "F/idle", "0-1", digits=4, wide=True),
    *(Column(cause, cause.replace("_", " "), "GPUs", digits=2, wide=True) for cause in _CAUSES),
    Column("reason", "Note", wide=True),
)
_SHAPE_COLUMNS = (
    Column("shape", "Shape"),
    Column("share_percent", "Share", "%", digits=1),
    Column("fits_now", "Fits now", "members"),
    Column("stranded_gpus", "Cannot use", "GPUs", digits=2),
)
_FLAT_COLUMNS = tuple(
    Column(key, key)
    for key in (
        *("pool", "gpu_model", "fragmentation_index", "fgd_ratio", "free_milligpu", "stranded_milligpu"),
        *(f"{cause}_milligpu" for cause in _CAUSES),
        *("cpu_only_milligpu", "reason"),
    )
)


def fragmentation_report(evaluation: Evaluation) -> Report:
    """What `gpuwatch fragmentation` prints."""
    report = evaluation.fragmentation
    scopes = (report.overall, *report.scopes) if report else ()
    return Report(
        title=f"Fragmentation of {evaluation.cluster}",
        document=fragmentation_document(evaluation),
        sections=(
            *headline_sections(report),
            *fits_sections(report),
            *_scope_sections(report),
            *waterfall_sections(evaluation, scopes=False),
        ),
        flat=Table(title="", columns=_FLAT_COLUMNS, rows=tuple(_flat_row(scope) for scope in scopes)),
        notes=() if report else ("the fragmentation stage failed; gpuwatch doctor names the cause",),
    )


def headline_sections(report: FragmentationReport | None) -> tuple[Section, ...]:
    """The index in one sentence and its causes as bars."""
    if report is None:
        return (Lines(title="Fragmentation", lines=("unknown: its stage failed (see gpuwatch doctor)",)),)
    overall = report.overall
    sections: list[Section] = [Lines(title="Fragmentation", lines=tuple(_sentences(report)))]
    causes = [
        Bar(cause.replace("_", " "), overall.by_cause[cause] / MILLI, told)
        for cause, told in _CAUSES.items()
        if overall.by_cause.get(cause)
    ]
    causes += [
        Bar(cause.replace("_", " "), amount / MILLI)
        for cause, amount in overall.by_cause.items()
        if cause not in _CAUSES and amount
    ]
    if causes:
        sections.append(
            Chart(title="Stranded by cause", unit="GPUs", bars=tuple(causes), full=overall.free_milligpu / MILLI)
        )
    return tuple(sections)


def _sentences(report: FragmentationReport) -> list[str]:
    overall = report.overall
    if overall.fragmentation_index is None:
        out = [f"No index: {(overall.reason or 'unknown').replace('_', ' ')}."]
    else:
        out = [
            f"Index {number(overall.fragmentation_index, 1)} of 100: of {number(overall.free_milligpu / MILLI)} free"
            f" GPUs, {number(overall.stranded_milligpu / MILLI, 2)} cannot be used by what is asked for."
        ]
        if overall.reason:
            out.append(f"Note: {overall.reason}.")
    if overall.fgd_ratio is not None:
        out.append(f"The published measure F/idle, CPU-only shapes counted in, is {number(overall.fgd_ratio, 4)}.")
    if report.mix_basis:
        covered = report.mix_coverage_ratio
        share = f"; its shapes cover {number(100 * covered, 1)}% of it" if covered is not None else ""
        out.append(f"Demand: {report.mix_basis}{share}.")
    if report.excluded_mig_gpus:
        out.append(f"{report.excluded_mig_gpus} GPUs in MIG mode are left out: their slices are not time shares.")
    return out


def fits_sections(report: FragmentationReport | None, most: int | None = None) -> tuple[Section, ...]:
    """Which shapes fit now and how often; only the first `most` (the commonest) when given."""
    if report is None:
        return ()
    shown = report.shapes[:most]
    rows: tuple[Row, ...] = tuple(
        {
            "shape": fit.shape.label,
            "share_percent": 100 * fit.share_ratio,
            "fits_now": fit.fits_now,
            "stranded_gpus": fit.stranded_milligpu / MILLI,
        }
        for fit in shown
    )
    hidden = len(report.shapes) - len(shown)
    title = f"What fits now (the commonest {len(shown)} of {len(report.shapes)} shapes)" if hidden else "What fits now"
    return (Table(title=title, columns=_SHAPE_COLUMNS, rows=rows, empty="no demand is known"),)


def _scope_sections(report: FragmentationReport | None) -> tuple[Section, ...]:
    if report is None:
        return ()
    rows = tuple(_row(each) for each in report.scopes if not each.is_cell)
    return (Table(title="By pool and by model", columns=_SCOPE_COLUMNS, rows=rows),)


def _row(scope: FragmentationScope) -> dict[str, Cell]:
    return {
        "scope": scope_name(scope.pool, scope.gpu_model),
        "fragmentation_index": scope.fragmentation_index,
        "free_gpus": scope.free_milligpu / MILLI,
        "stranded_gpus": scope.stranded_milligpu / MILLI,
        "fgd_ratio": scope.fgd_ratio,
        **{cause: scope.by_cause[cause] / MILLI for cause in _CAUSES if cause in scope.by_cause},
        "reason": scope.reason,
    }


def _flat_row(scope: FragmentationScope) -> dict[str, Cell]:
    return {
        "pool": scope.pool,
        "gpu_model": scope.gpu_model,
        "fragmentation_index": scope.fragmentation_index,
        "fgd_ratio": scope.fgd_ratio,
        "free_milligpu": scope.free_milligpu,
        "stranded_milligpu": scope.stranded_milligpu,
        **{f"{cause}_milligpu": scope.by_cause.get(cause) for cause in _CAUSES},
        "cpu_only_milligpu": scope.cpu_only_milligpu,
        "reason": scope.reason,
    }
