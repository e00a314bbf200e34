"""One evaluation built by hand, with something in every printed field and names that try to break out."""

from __future__ import annotations

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
from gpuwatch.model.placement import Assignment, GpuCountOption, GpuMemoryNeed, PlacementAdvice, PlacementChoice
from gpuwatch.model.snapshot import Finding, SourceHealth
from tests.builders import NOW, a_shape

HOSTILE = 'ml/<script>alert("x")</script>|\x1b[31mred\x1b[0m\n=cmd()'


def a_waterfall(**fields) -> Waterfall:
    numbers = {
        "installed": 64_000,
        "healthy": 62_000,
        "schedulable": 54_000,
        "allocated": 40_500,
        "active": 30_000,
        "idle_held": 6_500,
        "activity_unknown": 4_000,
        "free": 13_500,
        "health_unknown": 8_000,
    }
    counted = {f"{name}_milligpu": amount for name, amount in numbers.items()}
    return Waterfall(**{**counted, "blocked": {"cordoned": 8_000, "unhealthy": 2_000}, **fields})


def a_scope(**fields) -> FragmentationScope:
    known = {
        "free_milligpu": 13_500,
        "stranded_milligpu": 4_725.5,
        "fragmentation_index": 35.0037037,
        "fgd_ratio": 0.4150,
        "by_cause": {"no_access": 1_000.0, "gpu_lacking": 3_000.0, "cpu_lacking": 725.5, "both_lacking": 0.0},
        "cpu_only_milligpu": 877.0,
    }
    return FragmentationScope(**{**known, **fields})


def a_recommendation(rule: str = "idle_held", name: str = "ml/sleepy", **fields) -> Recommendation:
    known = {
        "id": f"{rule}-{name}"[:12],
        "severity": "warning",
        "confidence": Confidence(value=0.9, basis="60 of 60 samples"),
        "subject": Subject(
            kind="job", name=name, node="n1", pool="train", gpu_model="H100-80", tenant="ml", gpus=(0, 1)
        ),
        "summary": f"Give back 2 GPUs that {name} holds and does not use",
        "recoverable": Recoverable(gpus=2.0, gpu_hours_per_week=336.0, cost=1008.0, currency="USD", kwh=50.4),
        "risk": Risk(disruption="the job ends", work_lost_seconds=7200, basis="no checkpoint is known"),
        "facts": {"idle_seconds": 5400},
        "commands": (
            Command(run=f"kubectl scale deploy/{name} --replicas=0", undo=f"kubectl scale deploy/{name} --replicas=1"),
        ),
        "evidence": (Evidence(query="max_over_time(x[30m])", value=0.0, unit="ratio", window_seconds=1800),),
        "unlocks": ("ml/waiting",),
        "valid_until": NOW + timedelta(hours=1),
    }
    return Recommendation(rule=rule, **{**known, **fields})


def an_unpriced_recommendation() -> Recommendation:
    return a_recommendation(
        "drain_node",
        "n7",
        id="drain-n7",
        severity="critical",
        subject=Subject(kind="node", name="n7", node="n7", pool="infer", gpu_model="L40S"),
        summary="Drain n7: its device 3 reported XID 79",
        recoverable=Recoverable(
            gpus=0.0, gpu_hours_per_week=0.0, missing={"cost": "no price for L40S", "kwh": "no power reading"}
        ),
        commands=(),
        unlocks=(),
    )


def a_hostile_recommendation() -> Recommendation:
    return a_recommendation(
        "mis_tiered",
        HOSTILE,
        id="hostile",
        severity="info",
        subject=Subject(kind="job", name=HOSTILE, node="n2", pool="train", tenant="=sum(A1)"),
        summary=f"Move {HOSTILE} to a smaller card",
        commands=(Command(run="kubectl get pod 'a`b```c'", undo=""),),
    )


def forecasts() -> tuple[Forecast, ...]:
    steps = tuple(
        ForecastStep(
            at=NOW + timedelta(hours=hour),
            mean_gpus=30.0 + hour,
            intervals={"0.8": (27.5 + hour, 33.0 + hour), "0.95": (25.0 + hour, 36.25 + hour)},
        )
        for hour in range(3)
    )
    known = Forecast(
        pool="train",
        kind="all",
        quantity="demand_gpus",
        status="ok",
        model="arima",
        model_reason="least error on held-out days",
        skill_vs_seasonal_naive=0.18,
        coverage_ratio={"0.8": 0.79, "0.95": 0.94},
        history_steps=336,
        steps=steps,
    )
    short = Forecast(
        pool="infer",
        kind="inference",
        quantity="demand_gpus",
        status="insufficient_data",
        reason="2 of 4 days of history",
        history_steps=48,
    )
    return known, short


def an_evaluation(**fields) -> Evaluation:
    known = {
        "id": "0123456789ab",
        "cluster": "test",
        "snapshot_taken_at": NOW,
        "waterfall": a_waterfall(),
        "waterfall_scopes": (a_waterfall(pool="train", blocked={}), a_waterfall(gpu_model="H100-80")),
        "fragmentation": FragmentationReport(
            overall=a_scope(),
            scopes=(
                a_scope(pool="train"),
                FragmentationScope(gpu_model="H100-80", reason="nothing is free"),
            ),
            shapes=(
                ShapeFit(shape=a_shape(8, cpu=96_000), share_ratio=0.25, fits_now=0, stranded_milligpu=13_500.0),
                ShapeFit(shape=a_shape(1, 460), share_ratio=0.75, fits_now=17, stranded_milligpu=1_800.0),
            ),
            mix_basis="shapes of the jobs in the snapshot",
            mix_coverage_ratio=0.96,
            excluded_mig_gpus=2,
        ),
        "demand": (PendingDemand(pool="train", kind="training", demand_milligpu=48_000, pending_milligpu=8_000),),
        "forecasts": forecasts(),
        "recommendations": (a_recommendation(), an_unpriced_recommendation(), a_hostile_recommendation()),
        "abstentions": (Abstention(rule="idle_held", subject="ml/young", reason="warm_up", detail="120 s old"),),
        "sources": (SourceHealth(name="file:now.json", kind="file", ok=True, observed_at=NOW),),
        "findings": (
            Finding(code="over_allocated", severity="warning", subject="n1/0", detail="clipped to one", count=2),
        ),
    }
    return Evaluation(**{**known, **fields})


def a_partial_evaluation() -> Evaluation:
    return an_evaluation(
        fragmentation=None,
        waterfall=None,
        waterfall_scopes=(),
        recommendations=(),
        abstentions=(),
        forecasts=(),
        sources=(SourceHealth(name="prometheus", kind="prometheus", ok=False, cause="timeout"),),
        failures=(StageFailure(stage="mix", code="ValueError", detail="boom"),),
    )


def a_placement(feasible: bool = True) -> PlacementAdvice:
    if not feasible:
        return PlacementAdvice(
            evaluation_id="0123456789ab",
            policy="fgd",
            feasible=False,
            blockers={"gpu_lacking": 7, "wrong_model": 12},
            fits_by_sum_not_by_shape=True,
            nearest_fix="ask for 4 GPUs a member",
        )
    where = Assignment(node="n1", pool="train", gpu_model="H100-80", gpus=(0, 1))
    return PlacementAdvice(
        evaluation_id="0123456789ab",
        policy="fgd",
        feasible=True,
        choices=(
            PlacementChoice(
                rank=1,
                assignments=(where, where),
                fragmentation_before=35.0,
                fragmentation_after=33.25,
                stranded_delta_milligpu=-820.5,
                blocked_shapes=("8xGPU 96cpu",),
            ),
        ),
        blockers={"gpu_lacking": 7},
    )


def a_model_placement() -> PlacementAdvice:
    """One that asks for the memory of a model, with the number of GPUs left open, on cards of two generations."""
    where = [
        Assignment(node=f"n{at}", pool="train", gpu_model=card, gpus=(0, 1))
        for at, card in enumerate(("H200-141", "B200"))
    ]
    choice = PlacementChoice(
        rank=1,
        assignments=tuple(where),
        fragmentation_before=35.0,
        fragmentation_after=None,
        stranded_delta_milligpu=0.0,
        mixed_generations=("blackwell", "hopper"),
    )
    need = GpuMemoryNeed(
        gpus=2,
        gpu_memory_bytes=98 * 10**9,
        total_bytes=392 * 10**9,
        parts={"weights": 280 * 10**9, "cache_and_activations": 112 * 10**9},
        formula="280 billion parameters x (1 weights + 0.4 cache and activations) = 1.4 bytes each in fp8",
        assumptions=("all devices of all members share the model evenly",),
        preferred_models=("H200-141",),
        excluded={"A100-80": "of the ampere generation, which does not compute in fp8"},
        options=(
            GpuCountOption(gpus=1, gpu_memory_bytes=196 * 10**9, gpu_models=(), nodes=0),
            GpuCountOption(gpus=2, gpu_memory_bytes=98 * 10**9, gpu_models=("B200", "H200-141"), nodes=2),
        ),
    )
    return PlacementAdvice(
        evaluation_id="0123456789ab",
        policy="fgd",
        feasible=True,
        choices=(choice,),
        blockers={"precision_unsupported": 3},
        gpu_memory=need,
    )
