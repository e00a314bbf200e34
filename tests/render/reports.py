"""Every report of the command line, made from the evaluation built by hand."""

from __future__ import annotations

from datetime import timedelta

from gpuwatch.advice.mig_steps import steps
from gpuwatch.counting.traps import traps
from gpuwatch.fit.booking import book
from gpuwatch.model.cluster import MigInstance
from gpuwatch.placement.mig.asks import asks_of
from gpuwatch.placement.mig.cluster import plan_for
from gpuwatch.placement.mig.devices import Limits
from gpuwatch.render.documents import placement_document
from gpuwatch.render.report import Report
from gpuwatch.render.reports.doctor import doctor_report
from gpuwatch.render.reports.forecast import forecast_report
from gpuwatch.render.reports.fragmentation import fragmentation_report
from gpuwatch.render.reports.mig import mig_plan_report
from gpuwatch.render.reports.once import once_report
from gpuwatch.render.reports.placement import placement_report
from gpuwatch.render.reports.recommendations import recommendations_report
from gpuwatch.render.reports.snapshot import snapshot_report
from tests.builders import NOW, a_gpu, a_job, a_node, a_shape, a_snapshot, busy
from tests.render.evaluations import a_model_placement, a_partial_evaluation, a_placement, an_evaluation

SNAPSHOT = a_snapshot(
    a_node("n1", [a_gpu(0, activity=busy()), a_gpu(1, health="unhealthy"), a_gpu(2, replicas=4), a_gpu(3)]),
    a_node("n2", 2, "L40S", pool="infer", block_causes=("cordoned",), cpu_allocatable_millicores=None),
    a_node(
        "n3",
        [
            a_gpu(
                0,
                mig_enabled=True,
                mig_instances=tuple(
                    MigInstance(id=str(at), profile="1g.10gb", compute_slices=1, memory_slices=1) for at in range(3)
                ),
            )
        ],
    ),
    jobs=[
        a_job("whole", "n1", [0], started_at=NOW - timedelta(hours=3)),
        a_job("half", "n1", [3], a_shape(milligpu=500)),
        a_job("waits", shape=a_shape(8)),
        a_job("done", "n1", [3], phase="finished"),
        a_job("busy-on-cordoned", "n2", [0]),
    ],
)


def every_report() -> dict[str, Report]:
    """Report by the name of its golden files."""
    evaluation, partial = an_evaluation(), a_partial_evaluation()
    advice = evaluation.recommendations
    placed, refused, for_model = a_placement(), a_placement(feasible=False), a_model_placement()
    booking = book(SNAPSHOT)
    asked = {"3g.40gb": 2, "1g.10gb": 1, "7g.80gb": 2}
    plan = plan_for(SNAPSHOT, asks_of(asked), Limits(include_busy=True))
    return {
        "fragmentation": fragmentation_report(evaluation),
        "fragmentation_partial": fragmentation_report(partial),
        "forecast": forecast_report(evaluation),
        "recommend": recommendations_report(evaluation, advice),
        "recommend_grouped": recommendations_report(evaluation, advice, group_by="pool", show_commands=True),
        "recommend_none": recommendations_report(partial, ()),
        "place": placement_report(placed, placement_document(placed, evaluation)),
        "place_model": placement_report(for_model, placement_document(for_model, evaluation)),
        "place_refused": placement_report(refused, placement_document(refused, evaluation)),
        "mig_plan": mig_plan_report(plan, steps(plan.devices, SNAPSHOT.jobs), evaluation),
        "once": once_report(evaluation),
        "doctor": doctor_report(evaluation, SNAPSHOT, traps(SNAPSHOT, booking)),
        "doctor_partial": doctor_report(partial, SNAPSHOT, None),
        "snapshot": snapshot_report(SNAPSHOT, booking),
    }
