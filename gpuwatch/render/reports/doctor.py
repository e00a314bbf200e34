"""What was found and what is missing: sources, counts, findings, history; and the counting traps met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from gpuwatch.counting.traps import Trap
from gpuwatch.model.evaluation import Evaluation
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import MILLI
from gpuwatch.render.documents import Document, waterfall_document
from gpuwatch.render.plain import plain, time_text
from gpuwatch.render.report import Cell, Column, Lines, Report, Section, Table
from gpuwatch.render.reports.servers import missing_series, server_table
from gpuwatch.render.reports.waterfall import waterfall_sections

_SOURCE_COLUMNS = (
    Column("name", "Source"),
    Column("kind", "Kind"),
    Column("state", "State"),
    Column("observed_at", "Observed at", "UTC"),
    Column("detail", "Detail", flex=True),
)
_COUNT_COLUMNS = (Column("what", "Found"), Column("count", "Count"), Column("note", "Of these", flex=True))
_FINDING_COLUMNS = (
    Column("severity", "Severity", severity=True),
    Column("code", "Code"),
    Column("count", "Times"),
    Column("subject", "Subject"),
    Column("detail", "How it was read", flex=True),
)
_TRAP_COLUMNS = (
    Column("id", "Trap"),
    Column("gpus", "Off by", "GPUs"),
    Column("subjects", "Met", "times"),
    Column("told", "What a plain count takes for GPUs in use or free", flex=True),
    Column("handling", "Counted here as"),
    Column("example", "For example", wide=True),
)
_MISSING_COLUMNS = (Column("what", "Missing"), Column("todo", "What to do", flex=True))
_MOST_ALIKE = 5  # findings of one code that a table shows one by one
_READINGS_TODO = {
    "exporter_down": "start the exporter on that node, or see why it does not answer its scrapes",
    "lost": "look at the kernel log of that node: the driver no longer sees the device",
    "not_collected": "add the field to the exporter's list of counters",
    "no_series": "check that its exporter runs on that node and is scraped",
}
_FLAT = ("severity", "code", "count", "subject", "detail")


def doctor_report(
    evaluation: Evaluation,
    snapshot: ClusterSnapshot,
    met: tuple[Trap, ...] | None = None,
    *,
    servers: Mapping[str, Mapping[str, Any]] | None = None,
) -> Report:
    """What `gpuwatch doctor` prints; with `met` (the counting traps met) also the waterfall and each of them.

    servers: source name -> what that monitoring server knows and lacks, as plain values.
    """
    missing = [*missing_parts(evaluation, snapshot), *missing_series(servers or {})]
    findings = tuple(_finding_rows(evaluation))
    sections: list[Section] = [
        Lines(title="", lines=(f"Cluster {evaluation.cluster} at {time_text(evaluation.snapshot_taken_at)}",)),
        Table(title="Sources", columns=_SOURCE_COLUMNS, rows=tuple(_source_rows(evaluation)), empty="none is named"),
        *(server_table(name, told) for name, told in (servers or {}).items()),
        Table(title="Found", columns=_COUNT_COLUMNS, rows=tuple(_count_rows(evaluation, snapshot))),
        Table(title="Findings", columns=_FINDING_COLUMNS, rows=_folded(findings), empty="nothing odd"),
        Table(
            title="Missing",
            columns=_MISSING_COLUMNS,
            rows=tuple({"what": what, "todo": todo} for what, todo in missing),
            empty="nothing",
        ),
    ]
    if met is not None:
        rows = tuple(_trap_row(trap) for trap in met)
        sections += [
            *waterfall_sections(evaluation),
            Table(title="Counting traps met", columns=_TRAP_COLUMNS, rows=rows, empty="none"),
        ]
    return Report(
        title=f"Health of what gpuwatch reads from {evaluation.cluster}",
        document=_document(evaluation, snapshot, met, missing, servers),
        sections=tuple(sections),
        flat=Table(title="", columns=tuple(Column(key, key) for key in _FLAT), rows=findings),
    )


def missing_parts(evaluation: Evaluation, snapshot: ClusterSnapshot) -> list[tuple[str, str]]:
    """(what is missing, what to do) for every gap that weakens an answer."""
    gpus = [gpu for node in snapshot.nodes for gpu in node.gpus]
    silent = Counter(gpu.telemetry_reason or "unknown" for gpu in gpus if gpu.telemetry is None)
    unmeasured = sum(gpu.activity is None and not gpu.mig_enabled for gpu in gpus)
    unmodeled = sum(gpu.model is None for gpu in gpus)
    no_cpu = sum(node.cpu_allocatable_millicores is None for node in snapshot.nodes if node.gpus)
    short = [each for each in evaluation.forecasts if each.status != "ok"]
    gaps = [
        (f"source {each.name}: {each.cause or 'unknown'}", each.detail or "see its address")
        for each in evaluation.sources
        if not each.ok
    ]
    for reason, count in sorted(silent.items()):
        gaps.append((f"readings of {count} GPUs ({reason})", _READINGS_TODO.get(reason, _READINGS_TODO["no_series"])))
    if unmeasured:
        todo = "scrape at least every 60 s; idleness needs a whole window of samples and is unknown until then"
        gaps.append((f"an activity window of {unmeasured} GPUs", todo))
    if unmodeled:
        gaps.append((f"the model of {unmodeled} GPUs", "export the product name or label the node with it"))
    if no_cpu:
        gaps.append((f"the CPU capacity of {no_cpu} GPU nodes", "export node capacity; CPU is taken as enough there"))
    if not snapshot.jobs:
        gaps.append(("jobs", "export pods or Slurm jobs; without them every GPU looks free"))
    if not evaluation.forecasts:
        gaps.append(("demand history", "run gpuwatch serve for some days, or give a source that keeps history"))
    gaps += [(f"a forecast of {each.pool}/{each.kind}", each.reason or "wait for more history") for each in short]
    gaps += [(f"stage {each.stage}: {each.code}", each.detail) for each in evaluation.failures]
    return gaps


def _source_rows(evaluation: Evaluation) -> list[dict[str, Cell]]:
    return [
        {
            "name": source.name,
            "kind": source.kind,
            "state": "ok" if source.ok else f"failed: {source.cause or 'unknown'}",
            "observed_at": time_text(source.observed_at) if source.observed_at else None,
            "detail": source.detail,
        }
        for source in evaluation.sources
    ]


def _count_rows(evaluation: Evaluation, snapshot: ClusterSnapshot) -> list[dict[str, Cell]]:
    gpus = [gpu for node in snapshot.nodes for gpu in node.gpus]
    members = [member for job in snapshot.jobs for member in job.members]
    depth = max((each.history_steps for each in evaluation.forecasts), default=0)
    tally: tuple[tuple[str, int, Counter[str]], ...] = (
        ("nodes", len(snapshot.nodes), Counter(node.pool for node in snapshot.nodes)),
        ("GPUs", len(gpus), Counter(gpu.model or "unknown model" for gpu in gpus)),
        ("GPUs with readings", sum(gpu.telemetry is not None for gpu in gpus), Counter()),
        ("GPUs in MIG mode", sum(gpu.mig_enabled for gpu in gpus), Counter()),
        ("jobs", len(snapshot.jobs), Counter(job.phase for job in snapshot.jobs)),
        ("members bound to a node", sum(member.node is not None for member in members), Counter()),
        ("hours of demand history", depth, Counter()),
    )
    return [
        {"what": what, "count": count, "note": ", ".join(f"{n} {name}" for name, n in sorted(of.items())) or None}
        for what, count, of in tally
    ]


def _finding_rows(evaluation: Evaluation) -> list[dict[str, Cell]]:
    return [
        {
            "severity": each.severity,
            "code": each.code,
            "count": each.count,
            "subject": each.subject,
            "detail": each.detail,
        }
        for each in evaluation.findings
    ]


def _folded(rows: tuple[dict[str, Cell], ...]) -> tuple[dict[str, Cell], ...]:
    """The first few findings of each code, and the rest of it as one row: one fault can speak of every node."""
    alike: dict[tuple[Cell, Cell], list[dict[str, Cell]]] = {}
    for row in rows:
        alike.setdefault((row["severity"], row["code"]), []).append(row)
    out: list[dict[str, Cell]] = []
    for same in alike.values():
        shown, rest = (same, []) if len(same) <= _MOST_ALIKE + 1 else (same[:_MOST_ALIKE], same[_MOST_ALIKE:])
        out += shown
        if rest:
            told = {"subject": f"{len(rest):,} more", "detail": "of the same code; -o json lists each"}
            out.append({**rest[0], "count": sum(int(row["count"] or 0) for row in rest), **told})
    return tuple(out)


def _trap_row(trap: Trap) -> dict[str, Cell]:
    return {
        "id": trap.id,
        "gpus": trap.milligpu / MILLI,
        "subjects": trap.subjects,
        "told": trap.told,
        "handling": trap.handling,
        "example": trap.example,
    }


def _document(
    evaluation: Evaluation,
    snapshot: ClusterSnapshot,
    met: tuple[Trap, ...] | None,
    missing: list[tuple[str, str]],
    servers: Mapping[str, Mapping[str, Any]] | None,
) -> Document:
    document: Document = {
        "schema": "gpuwatch.doctor/1",
        "evaluation_id": evaluation.id,
        "cluster": evaluation.cluster,
        "snapshot_taken_at": time_text(evaluation.snapshot_taken_at),
        "sources": plain(evaluation.sources),
        "servers": dict(servers or {}),
        "counts": {str(row["what"]): row["count"] for row in _count_rows(evaluation, snapshot)},
        "missing": [{"what": what, "todo": todo} for what, todo in missing],
        "items": plain(evaluation.findings),
        "skipped": [],
    }
    if met is not None:
        document["waterfall"] = waterfall_document(evaluation)["items"]
        document["traps"] = plain(met)
    return document
