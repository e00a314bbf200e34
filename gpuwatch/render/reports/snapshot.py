"""A recorded cluster, node by node."""

from __future__ import annotations

from collections import Counter

from gpuwatch.fit.booking import BookedNode, Booking
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch.model.units import MILLI
from gpuwatch.render.plain import plain, time_text
from gpuwatch.render.report import Cell, Column, Lines, Report, Table

_COLUMNS = (
    Column("node", "Node"),
    Column("pool", "Pool"),
    Column("models", "GPUs"),
    Column("held_gpus", "Held", "GPUs"),
    Column("free_gpus", "Free", "GPUs"),
    Column("whole_free_gpus", "Free whole", "GPUs"),
    Column("members", "Members", "count"),
    Column("cpu_free", "CPU free", "cores", digits=1),
    Column("blocked", "Blocked by"),
    Column("unhealthy_gpus", "Unhealthy", "GPUs", wide=True),
    Column("mig_gpus", "MIG mode", "GPUs", wide=True),
    Column("nvlink_domain", "NVLink domain", wide=True),
)


def snapshot_report(snapshot: ClusterSnapshot, booking: Booking) -> Report:
    """What `gpuwatch snapshot show` prints; json prints the nodes and jobs as recorded."""
    rows = tuple(_row(booked) for booked in booking.nodes.values())
    phases = Counter(job.phase for job in snapshot.jobs)
    told = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "none"
    document = plain(snapshot)
    head = {key: document[key] for key in ("cluster", "taken_at", "sources", "findings", "jobs")}
    return Report(
        title=f"Snapshot of {snapshot.cluster}",
        document={"schema": "gpuwatch.snapshot-nodes/1", **head, "items": document["nodes"], "skipped": []},
        sections=(
            Lines(
                title="",
                lines=(f"Cluster {snapshot.cluster} at {time_text(snapshot.taken_at)}; jobs: {told}",),
            ),
            Table(title="Nodes", columns=_COLUMNS, rows=rows, empty="no node"),
        ),
        flat=Table(title="", columns=tuple(Column(column.key, column.key) for column in _COLUMNS), rows=rows),
        notes=tuple(f"{each.code}: {each.subject}: {each.detail}" for each in booking.findings),
    )


def _row(booked: BookedNode) -> dict[str, Cell]:
    node = booked.node
    models = Counter(gpu.model or "unknown" for gpu in node.gpus)
    cpu_free = booked.cpu_free_millicores
    time_shared = [left for gpu, left in zip(node.gpus, booked.left_milligpu, strict=True) if not gpu.mig_enabled]
    return {
        "node": node.name,
        "pool": node.pool,
        "models": ", ".join(f"{count}x {model}" for model, count in sorted(models.items())) or "none",
        "held_gpus": sum(MILLI - left for left in time_shared) / MILLI,
        "free_gpus": sum(booked.free_milligpu) / MILLI,
        "whole_free_gpus": sum(left == MILLI for left in booked.free_milligpu),
        "members": len({(hold.job.id, hold.member.name) for holds in booked.holds for hold in holds}),
        "cpu_free": None if cpu_free is None else cpu_free / MILLI,
        "blocked": ", ".join(cause.replace("_", " ") for cause in node.block_causes) or None,
        "unhealthy_gpus": sum(gpu.health == "unhealthy" for gpu in node.gpus),
        "mig_gpus": sum(gpu.mig_enabled for gpu in node.gpus),
        "nvlink_domain": node.nvlink_domain,
    }
