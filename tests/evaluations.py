"""A whole hand-built Evaluation that has something in every part."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from gpuwatch.model.evaluation import (
    Abstention,
    Command,
    Confidence,
    Evaluation,
    Evidence,
    Forecast,
    ForecastStep,
    FragmentationReport,
    FragmentationScope,
    PendingDemand,
    Recommendation,
    Recoverable,
    Risk,
    ShapeFit,
    StageFailure,
    Subject,
    Waterfall,
)
from gpuwatch.model.snapshot import Finding, SourceHealth
from tests.builders import NOW, a_shape


def a_waterfall(**fields) -> Waterfall:
    counts = {
        "installed_milligpu": 16_000,
        "healthy_milligpu": 15_000,
        "schedulable_milligpu": 14_000,
        "allocated_milligpu": 9_000,
        "active_milligpu": 5_000,
        "idle_held_milligpu": 3_000,
        "activity_unknown_milligpu": 1_000,
        "free_milligpu": 5_000,
        "blocked": {"unhealthy": 1_000, "cordoned": 1_000},
    }
    return Waterfall(**(counts | fields))


def advice(id_: str = "r1", rule: str = "idle_held", severity: str = "warning", **fields) -> Recommendation:
    given = {
        "id": id_,
        "rule": rule,
        "severity": severity,
        "confidence": Confidence(value=0.9, basis="60 of 60 samples"),
        "subject": Subject(kind="job", name=f"ml/{id_}", pool="a", tenant="ml", node="n1", gpu_model="H100-80"),
        "summary": f"job ml/{id_} holds 3 GPUs and does nothing",
        "recoverable": Recoverable(gpus=3.0, gpu_hours_per_week=504.0, missing={"cost": "no price", "kwh": "no power"}),
        "risk": Risk(disruption="the job ends"),
        "commands": (Command(run=f"kubectl delete pod {id_}", undo=f"kubectl apply -f {id_}.yaml"),),
        "evidence": (Evidence(query="max_over_time(x[30m])", value=0.0, unit="ratio", window_seconds=1800),),
    }
    return Recommendation(**(given | fields))


def a_forecast(pool: str = "a", kind: str = "all", **fields) -> Forecast:
    steps = tuple(
        ForecastStep(
            at=NOW + timedelta(hours=h), mean_gpus=9.0 + h, intervals={"0.8": (8.0, 11.0 + h), "0.95": (7.0, 12.0 + h)}
        )
        for h in range(24)
    )
    given = {"model": "seasonal_naive", "skill_vs_seasonal_naive": 0.1, "coverage_ratio": {"0.8": 0.79}, "steps": steps}
    return Forecast(**({"pool": pool, "kind": kind, "quantity": "demand_gpus", "status": "ok"} | given | fields))


def an_evaluation(**fields) -> Evaluation:
    scope = FragmentationScope(
        free_milligpu=5_000, stranded_milligpu=1_250.0, fragmentation_index=25.0, by_cause={"gpu_lacking": 1_250.0}
    )
    empty = FragmentationScope(pool="b", reason="nothing_free")
    given = {
        "id": "abc123",
        "cluster": "test",
        "snapshot_taken_at": NOW,
        "waterfall": a_waterfall(),
        "waterfall_scopes": (
            a_waterfall(pool="a"),
            Waterfall(pool="b"),
            a_waterfall(gpu_model="H100-80"),
            a_waterfall(pool="a", gpu_model="H100-80"),
        ),
        "fragmentation": FragmentationReport(
            overall=scope,
            scopes=(
                replace(scope, pool="a"),
                empty,
                replace(scope, gpu_model="H100-80"),
                replace(scope, pool="a", gpu_model="H100-80"),
            ),
            shapes=(ShapeFit(shape=a_shape(8), share_ratio=1.0, fits_now=0, stranded_milligpu=5_000.0),),
            mix_basis="12 jobs",
        ),
        "demand": (PendingDemand(pool="a", kind="all", demand_milligpu=11_000, pending_milligpu=2_000),),
        "forecasts": (
            a_forecast(),
            Forecast(
                pool="b", kind="all", quantity="demand_gpus", status="insufficient_data", reason="needs 90 h more"
            ),
        ),
        "recommendations": (
            advice("r1", severity="critical"),
            advice("r2", rule="consolidate"),
            advice("r3", severity="info"),
        ),
        "abstentions": (Abstention(rule="idle_held", subject="ml/x", reason="warm_up"),),
        "sources": (SourceHealth(name="file:x", kind="file", ok=True, observed_at=NOW),),
        "findings": (Finding(code="unknown_node", severity="warning", subject="ml/y", detail="no such node", count=2),),
        "failures": (StageFailure(stage="mix", code="ValueError", detail="odd"),),
    }
    return Evaluation(**(given | fields))
