"""The generated cluster: repeatable, consistent at any moment; each case is found by the floor that looks for it."""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.counting.idleness import verdict
from gpuwatch.counting.waterfall import waterfalls
from gpuwatch.demand.pending import pending_demand
from gpuwatch.demand.series import demand_now
from gpuwatch.fit.booking import book
from gpuwatch.model.catalogue import card, match
from gpuwatch.model.settings import AnalysisSettings
from gpuwatch.simulate.cluster import DEFAULT_TAKEN_AT, advance, simulate
from tests.processes import printed

SETTINGS = AnalysisSettings()
IDLE_CASES = ("idle_held", "loaded_idle", "protected_idle")


@pytest.fixture(scope="module")
def made():
    return simulate()


@pytest.fixture(scope="module")
def booking(made):
    return book(made.snapshot)


@pytest.fixture(scope="module")
def jobs(made):
    return {job.id: job for job in made.snapshot.jobs}


def gpu_of(snapshot, subject: str):
    node, index = subject.split("/")
    return next(g for n in snapshot.nodes if n.name == node for g in n.gpus if g.index == int(index))


# --- repeatable ---------------------------------------------------------------------------------------------------


def test_equal_arguments_give_equal_values_and_another_seed_does_not() -> None:
    assert simulate(seed=3) == simulate(seed=3)
    assert simulate(seed=3).snapshot != simulate(seed=4).snapshot


def test_two_processes_with_different_hash_seeds_agree() -> None:
    program = (
        "import hashlib; from gpuwatch.simulate.cluster import simulate, advance;"
        "s = advance(simulate(seed=5), 4321); print(hashlib.sha256(repr(s).encode()).hexdigest())"
    )
    prints = {printed(program, PYTHONHASHSEED=hash_seed) for hash_seed in ("0", "1")}
    assert prints == {hashlib.sha256(repr(advance(simulate(seed=5), 4321)).encode()).hexdigest()}


def test_it_needs_the_standard_library_only() -> None:
    program = (
        "import sys; from gpuwatch.simulate.cluster import simulate; simulate();"
        "print(sorted(set(sys.modules) & {'numpy', 'pydantic', 'pandas', 'typer', 'httpx', 'yaml'}))"
    )
    assert printed(program) == "[]"


def test_the_zone_of_the_date_does_not_matter_and_its_absence_is_refused() -> None:
    elsewhere = DEFAULT_TAKEN_AT.astimezone(timezone(timedelta(hours=9)))
    assert simulate(taken_at=elsewhere) == simulate(taken_at=DEFAULT_TAKEN_AT)
    with pytest.raises(ValueError, match="time zone"):
        simulate(taken_at=datetime(2026, 3, 2))  # noqa: DTZ001  the missing zone is the point
    with pytest.raises(ValueError, match="scale"):
        simulate(scale=0)


def test_another_date_moves_the_dates_and_nothing_else() -> None:
    then, later = simulate(), simulate(taken_at=DEFAULT_TAKEN_AT + timedelta(days=70))
    assert [(j.id, j.members, j.phase) for j in then.snapshot.jobs] == [
        (j.id, j.members, j.phase) for j in later.snapshot.jobs
    ]


# --- consistent at any moment -------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), seconds=st.integers(-7200, 500_000), scale=st.integers(1, 2))
def test_nothing_is_held_twice_and_all_names_are_unique(seed: int, seconds: int, scale: int) -> None:
    moment = advance(simulate(seed=seed, scale=scale), seconds)
    found = book(moment.snapshot)
    assert not found.findings
    assert not found.unbooked
    for node in found.nodes.values():
        assert node.cpu_free_millicores >= 0
        assert node.memory_free_bytes >= 0
    for names in (
        [j.id for j in moment.snapshot.jobs],
        [n.name for n in moment.snapshot.nodes],
        [(j.tenant, m.name) for j in moment.snapshot.jobs for m in j.members],
        [g.uuid for n in moment.snapshot.nodes for g in n.gpus],
    ):
        assert len(names) == len(set(names))


def test_requests_are_never_negative_or_beyond_the_node(made) -> None:
    room = {n.name: n for n in made.snapshot.nodes}
    for job in made.snapshot.jobs:
        assert job.shape.cpu_millicores > 0
        assert job.shape.memory_bytes > 0
        for member in job.members:
            if member.node:
                assert job.shape.cpu_millicores <= room[member.node].cpu_allocatable_millicores
                if job.phase != "finished":
                    assert len(member.shares) == job.shape.gpus


def test_devices_are_catalogue_cards_and_readings_stay_within_the_card(made) -> None:
    for node in made.snapshot.nodes:
        for gpu in node.gpus:
            assert match(gpu.product, gpu.memory_total_bytes / 2**20).id == gpu.model
            if gpu.telemetry is None:
                assert gpu.telemetry_reason in ("lost", "exporter_down")
                continue
            seen = gpu.telemetry
            assert seen.memory_used_bytes <= seen.memory_total_bytes
            assert 0 < seen.power_watts <= 1.02 * card(gpu.model).board_power_watts
            for field in ("utilization_ratio", "engine_active_ratio"):
                amount = getattr(seen, field)
                assert amount is None or 0 <= amount <= 1
                assert amount is not None or field in seen.missing


def test_slices_are_legal_and_do_not_overlap(made) -> None:
    cut = [g for n in made.snapshot.nodes for g in n.gpus if g.mig_enabled]
    assert {len(g.mig_instances) for g in cut} == {2, 4, 7}
    for gpu in cut:
        profiles = {p.name: p for p in card(gpu.model).mig_profiles}
        used: list[int] = []
        for part in gpu.mig_instances:
            profile = profiles[part.profile]
            assert part.placement_start in profile.placements
            used += range(part.placement_start, part.placement_start + profile.memory_slices)
        assert len(used) == len(set(used))
        assert sum(p.compute_slices for p in gpu.mig_instances) <= 7


# --- jobs come and go ---------------------------------------------------------------------------------------------


def test_time_moves_jobs_and_readings_but_not_the_planted_cases(made) -> None:
    later = advance(made, 3600)
    assert later.snapshot.taken_at == made.snapshot.taken_at + timedelta(hours=1)
    now, then = ({j.id for j in m.snapshot.jobs} for m in (later, made))
    assert now - then
    assert then - now
    planted = {s for case in (*IDLE_CASES, "mis_tiered", "pending_by_shape", "gated") for s in made.planted[case]}
    assert planted <= now & then
    assert advance(advance(made, 1000), 2600).snapshot == later.snapshot
    assert advance(made, 5).snapshot.nodes[0].gpus[0].telemetry == made.snapshot.nodes[0].gpus[0].telemetry
    assert advance(made, 15).snapshot.nodes[0].gpus[0].telemetry != made.snapshot.nodes[0].gpus[0].telemetry


def test_a_job_that_comes_again_waits_first_then_runs_where_its_forerunner_ran(made) -> None:
    phases: dict[str, list[str]] = {}
    for minute in range(0, 240, 5):
        for job in advance(made, 60 * minute).snapshot.jobs:
            if "-r1" in job.name:
                phases.setdefault(job.id, []).append(job.phase)
                assert (job.started_at is None) == (job.phase == "pending")
    runs = ["".join(p[0] for p in seen) for seen in phases.values()]
    assert runs
    assert all(run.lstrip("p").strip("r") == "" for run in runs)
    assert any(run.startswith("p") for run in runs)


# --- every case is found ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "state", "reason"),
    [
        ("idle_held", "idle", "measured_idle"),
        ("loaded_idle", "idle", "measured_idle"),
        ("protected_idle", "idle", "measured_idle"),
        ("warm_up", "unknown", "warm_up"),
        ("few_samples", "unknown", "insufficient_samples"),
        ("terminating", "unknown", "terminating"),
        ("partly_idle", "active", "partly_idle"),
        ("mis_tiered", "active", "measured_active"),
    ],
)
def test_idleness_cases_get_the_verdict_they_were_made_for(made, booking, jobs, case, state, reason) -> None:
    assert made.planted[case]
    for subject in made.planted[case]:
        found = verdict(jobs[subject], booking, made.snapshot.taken_at, SETTINGS)
        assert (found.state, found.reason) == (state, reason), subject
        assert found.loaded == (case == "loaded_idle")


def test_mis_tiered_jobs_leave_a_high_card_nearly_empty(made, jobs) -> None:
    for subject in made.planted["mis_tiered"]:
        for member in jobs[subject].members:
            for hold in member.shares:
                gpu = gpu_of(made.snapshot, f"{member.node}/{hold.gpu_index}")
                assert card(gpu.model).placement_tier >= 6
                assert gpu.activity.mean_ratio < SETTINGS.tier_mean_ratio
                assert gpu.activity.peak_memory_used_bytes < 16 * 2**30


def test_broken_and_troubled_devices(made) -> None:
    for case, causes in (
        ("lost", ("lost", "xid_79")),
        ("xid_48", ("xid_48",)),
        ("row_remap_failed", ("row_remap_failed",)),
    ):
        for subject in made.planted[case]:
            gpu = gpu_of(made.snapshot, subject)
            assert (gpu.health, gpu.health_causes) == ("unhealthy", causes)
    assert all(gpu_of(made.snapshot, s).telemetry is None for s in made.planted["lost"])
    assert all(gpu_of(made.snapshot, s).telemetry.xid == 48 for s in made.planted["xid_48"])
    assert all(gpu_of(made.snapshot, s).health == "healthy" for s in made.planted["xid_31"])
    assert all(gpu_of(made.snapshot, s).telemetry.temperature_celsius >= 85 for s in made.planted["hot"])
    cool = [g for n in made.snapshot.nodes for g in n.gpus if g.telemetry and g.telemetry.temperature_celsius < 80]
    assert len(cool) > 200


def test_nodes_that_are_blocked_dark_starved_fragmented_or_nearly_empty(made, booking) -> None:
    node = booking.nodes
    for name in made.planted["cordoned"]:
        assert node[name].node.block_causes == ("cordoned",)
        assert 0 < sum(node[name].left_milligpu) < 8000
        assert sum(node[name].free_milligpu) == 0
    assert all(node[name].node.block_causes == ("not_ready",) for name in made.planted["not_ready"])
    for name in made.planted["exporter_down"]:
        assert {g.telemetry_reason for g in node[name].node.gpus} == {"exporter_down"}
    for name in made.planted["cpu_starved"]:
        assert sum(node[name].free_milligpu) == 3000
        assert node[name].cpu_free_millicores < 8000
    assert all(1000 <= sum(node[name].free_milligpu) <= 2000 for name in made.planted["fragmented"])
    assert all(sum(node[name].free_milligpu) == 7000 for name in made.planted["consolidatable"])
    for name in made.planted["time_sliced"]:
        assert {g.replicas for g in node[name].node.gpus} == {4}
        assert any(len(holds) == 4 for holds in node[name].holds)


def test_a_slice_without_series_is_unknown_and_its_neighbors_are_not(made) -> None:
    for subject in made.planted["slice_without_series"]:
        node, index, silent = subject.split("/")
        parts = gpu_of(made.snapshot, f"{node}/{index}").mig_instances
        assert [p.id for p in parts if p.activity is None] == [silent]


def test_the_queue_holds_jobs_that_fit_by_sum_and_not_by_shape(made, booking, jobs) -> None:
    waiting = {s for row in pending_demand(made.snapshot, booking) for s in row.fits_by_sum_not_by_shape_jobs}
    assert {*made.planted["pending_by_shape"], *made.planted["pending_cpu_lacking"]} <= waiting
    assert all(jobs[s].phase == "gated" for s in made.planted["gated"])
    assert all(jobs[s].phase == "pending" for s in made.planted["pending"])


def test_idle_held_share_stays_between_what_was_published_for_good_and_bad_clusters(made, booking) -> None:
    overall, _ = waterfalls(booking, made.snapshot.taken_at, SETTINGS)
    share = overall.idle_held_milligpu / overall.allocated_milligpu
    assert 0.08 < share < 0.25
    assert Counter(job.phase for job in made.snapshot.jobs)["finished"] == 3


# --- demand history -----------------------------------------------------------------------------------------------


def test_history_is_two_weeks_of_whole_hours_up_to_now_with_one_hole(made) -> None:
    for series in made.history.series:
        assert series.step_seconds == 3600
        assert len(series.values) == 336
        end = series.start_at + timedelta(hours=336)
        assert end <= made.snapshot.taken_at < end + timedelta(hours=1)
        assert sum(v is None for v in series.values) == 5
        assert all(v is None or v >= 0 for v in series.values)


def test_kinds_add_up_to_all_and_the_last_hours_are_near_the_demand_of_now(made) -> None:
    by_key = {(s.pool, s.kind): s.values for s in made.history.series}
    now = demand_now(made.snapshot)
    for pool in {pool for pool, _ in by_key}:
        kinds = [values for (at, kind), values in by_key.items() if at == pool and kind != "all"]
        for i, total in enumerate(by_key[pool, "all"]):
            parts = [values[i] for values in kinds]
            assert (total is None) == (None in parts)
            assert total is None or total == pytest.approx(sum(parts), abs=0.01)
        recent = sum(by_key[pool, "all"][-3:]) / 3
        assert 0.5 * now[pool, "all"] <= recent <= 1.8 * now[pool, "all"], pool


def test_days_and_weekends_show_and_batch_comes_in_bursts(made) -> None:
    by_key = {(s.pool, s.kind): s for s in made.history.series}
    people = by_key["research-a100", "interactive"]
    at = {people.start_at + timedelta(hours=i): v for i, v in enumerate(people.values) if v is not None}
    noon = [v for t, v in at.items() if t.hour == 13 and t.weekday() < 5]
    night = [v for t, v in at.items() if t.hour == 2]
    weekend = [v for t, v in at.items() if t.hour == 13 and t.weekday() >= 5]
    assert min(noon) > 2 * max(night)
    assert min(noon) > 2 * max(weekend)
    batch = [v for v in by_key["research-a100", "batch"].values if v is not None]
    assert max(batch) > 1.6 * sorted(batch)[len(batch) // 2]


def test_histories_drawn_at_different_moments_agree_on_shared_hours(made) -> None:
    later = advance(made, 7 * 3600)
    for then, now in zip(made.history.series, later.history.series, strict=True):
        assert now.start_at == then.start_at + timedelta(hours=7)
        assert now.values[:-7] == then.values[7:]
    assert simulate(taken_at=datetime(2026, 3, 2, 12, 40, tzinfo=UTC)).history.series[0].start_at.minute == 0
