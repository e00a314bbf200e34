"""What a MIG repartition of one pool is worth, how sure that is, and what it rests on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gpuwatch.advice.context import AdviceContext
from gpuwatch.advice.queries import instant
from gpuwatch.fit.mig import geometry_of
from gpuwatch.model.cluster import Gpu
from gpuwatch.model.evaluation import Confidence, Evidence, Scalar
from gpuwatch.model.jobs import Job
from gpuwatch.model.mig import DeviceLayout, MigPlan, MigSpot

_CONFIDENCE = 0.8
_STARTS_UNTOLD = 0.7  # factor: the driver chooses the place, and may choose another
_UNMEASURED = 0.8  # factor: whether a process uses a deleted instance was not measured
_POD = "namespace,pod,uid,exported_namespace,exported_pod"  # whichever of them the scraper left


@dataclass(frozen=True, slots=True)
class Part:
    """What the plan changes in one pool."""

    pool: str
    layouts: tuple[DeviceLayout, ...]


def members(job: Job) -> int:
    """Members that wait."""
    return sum(member.node is None for member in job.members)


def gpus_worth(part: Part, jobs: dict[str, Job], context: AdviceContext) -> dict[str | None, float]:
    """Device share by model that the started jobs take of what is made; what is made beyond that is worth nothing."""
    made: dict[str | None, float] = defaultdict(float)
    instances = 0
    for layout in part.layouts:
        geometry = geometry_of(_gpu(layout, context))
        for spot in layout.create:
            profile = geometry.profile(spot.profile) if geometry else None
            if geometry and profile:
                made[layout.gpu_model] += profile.compute_slices / geometry.compute_slices
                instances += 1
    used = min(instances, sum(members(job) * job.shape.gpus for job in jobs.values()))
    return {model: share * used / instances for model, share in made.items()}


def confidence(part: Part, context: AdviceContext) -> Confidence:
    """How sure the plan is to work as told, with what lowers that."""
    number, words = _CONFIDENCE, ["every layout is legal on its card and the jobs fit beside it in the booking"]
    if any(spot.start is None for layout in part.layouts for spot in layout.create):
        number *= _STARTS_UNTOLD
        words.append("starts of the instances that stay are not told")
    if any(_unmeasured(layout, context) for layout in part.layouts):
        number *= _UNMEASURED
        words.append("use of a deleted instance was not measured")
    return Confidence(value=round(number, 2), basis="; ".join(words))


def _unmeasured(layout: DeviceLayout, context: AdviceContext) -> bool:
    gone = {spot.id for spot in layout.delete}
    instances = _gpu(layout, context).mig_instances
    return any(i.id in gone and (i.activity is None or i.activity.peak_ratio is None) for i in instances)


def _gpu(layout: DeviceLayout, context: AdviceContext) -> Gpu:
    return next(gpu for gpu in context.booking.nodes[layout.node].node.gpus if gpu.index == layout.gpu_index)


def facts_of(part: Part, plan: MigPlan) -> dict[str, Scalar]:
    """What the plan costs in GPUs and instances, and the layout of each device."""
    lost = [layout for layout in part.layouts if layout.was_free]
    facts: dict[str, Scalar] = {
        "gpus_repartitioned": len(part.layouts),
        "wholly_free_gpus_lost": len(lost),
        "gpus_switched_to_mig": sum(layout.enable_mig for layout in part.layouts),
        "idle_instances_in_the_way": ", ".join(
            _named(layout, spot) for layout in part.layouts for spot in layout.delete
        ),
        "method": plan.method,
    }
    for at, layout in enumerate(part.layouts, 1):
        made = ", ".join(_spot(spot) for spot in layout.create)
        facts[f"layout_{at}"] = (
            f"{layout.node} GPU {layout.gpu_index}: {made}; largest profile left {layout.largest_after or 'none'} "
            f"(before {layout.largest_before or 'none'})"
        )
    return facts


def _named(layout: DeviceLayout, spot: MigSpot) -> str:
    return f"{layout.node} GPU {layout.gpu_index} instance {spot.id} ({_spot(spot)})"


def _spot(spot: MigSpot) -> str:
    return spot.profile if spot.start is None else f"{spot.profile} at {spot.start}"


def told_counts(part: Part) -> str:
    """ "4x 1g.10gb, 1x 3g.40gb" of what is made."""
    counts = Counter(spot.profile for layout in part.layouts for spot in layout.create)
    return ", ".join(f"{count}x {profile}" for profile, count in sorted(counts.items()))


def evidence(part: Part, context: AdviceContext) -> Iterator[Evidence]:
    """Per profile, the pods of any pool that wait for it, from kube-state-metrics."""
    at = instant(context.snapshot)
    for profile in sorted({spot.profile for layout in part.layouts for spot in layout.create}):
        resource = "nvidia_com_mig_" + profile.replace(".", "_").replace("+", "_").replace("-", "_")
        asks = (
            f'{{__name__=~"kube_pod_container_resource_requests|kube_pod_init_container_resource_requests",'
            f'resource="{resource}",node=""}} @ {at} > 0'
        )
        waits = f"kube_pod_status_unschedulable @ {at} == 1"
        query = f"count(count by ({_POD}) ({asks}) and on ({_POD}) count by ({_POD}) ({waits}))"
        pods = sum(
            members(job)
            for job in context.snapshot.jobs
            if job.shape.mig_profile == profile and job.phase not in ("finished", "gated")
        )
        yield Evidence(query=query, value=float(pods), unit="pods")
