"""The gpuwatch policy against its twins, what each of its ideas does on small cases, and its lead over fgd."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from gpuwatch.fit.booking import book
from gpuwatch.fit.columns import columns_of
from gpuwatch.placement.arrivals import place_stream
from gpuwatch.placement.kernels.arrays import ask_at, asks_of, mix_of, state_of
from gpuwatch.placement.kernels.counts import HOLD, LAST, NEVER, TAKE
from gpuwatch.placement.lookahead import SEQUENCES, STEPS, arrivals_of, unused
from gpuwatch.placement.placer import Placer
from gpuwatch.placement.policy import PolicyContext, make_policy
from gpuwatch.placement.replay import field_of, replay_arrivals
from gpuwatch.traces.openb import read_openb
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.fragmentation.arrays import arrays, table_of_tasks
from tests.placement.test_policies import columns_from
from tests.reference import look_ahead as twin
from tests.reference.fragmentation import Device, Task
from tests.reference.states import MODELS, shape_of, some_mix, some_node, some_task

WHOLE = Task(1, 1000, 4000, ())


def sequences_of(mix: list[tuple[Task, float]]) -> list[list[Task]]:
    """The policy's own draws, as tasks."""
    arrivals = arrivals_of(table_of_tasks(mix))

    def task(shape: int) -> Task:
        models = () if arrivals.accepts[shape].all() else tuple(np.array(MODELS)[arrivals.accepts[shape, :-1]])
        return Task(int(arrivals.gpus[shape]), int(arrivals.share[shape]), int(arrivals.cpu[shape]), models)

    return [[task(shape) for shape in sequence] for sequence in arrivals.order.tolist()]


def policy_for(mix: list[tuple[Task, float]]):
    return make_policy("gpuwatch", PolicyContext(mix=table_of_tasks(mix)))


# -- looking ahead


@pytest.mark.parametrize("seed", range(12))
def test_scores_agree_with_the_twin(seed):
    rng = random.Random(seed)
    nodes, mix = [some_node(rng) for _ in range(8)], some_mix(rng)
    columns, policy, sequences = columns_from(nodes), policy_for(mix), sequences_of(mix)
    for _ in range(3):
        task = some_task(rng)
        rows = [
            row
            for row, (cpu, devices) in enumerate(nodes)
            if cpu >= task.cpu
            and sum(d.left >= task.share and (not task.models or d.model in task.models) for d in devices) >= task.gpus
        ]
        ranking = policy.rank(columns, shape_of(task), np.array(rows, dtype=np.int64), 0)
        for at, row in enumerate(rows):
            assert (ranking.score[at], ranking.device[at]) == twin.look_ahead_score(*nodes[row], task, sequences)


@pytest.mark.parametrize("seed", range(10))
def test_every_sequence_follows_the_mix(seed):
    """Each shape comes as often in each sequence as its share says, to within one; the order is another each time."""
    mix = some_mix(random.Random(seed))
    sequences = sequences_of(mix)
    assert len(sequences) == SEQUENCES
    whole = sum(weight for _, weight in mix)
    for sequence in sequences:
        assert len(sequence) == STEPS
        for task in {each for each, _ in mix}:
            due = STEPS * sum(weight for each, weight in mix if _same(each, task)) / whole
            alike = sum(1 for each, _ in mix if _same(each, task))
            assert abs(sum(_same(each, task) for each in sequence) - due) <= alike
    assert len({tuple(each) for each in sequences}) > 1 or len(mix) == 1
    assert sequences == sequences_of(mix)


def _same(one: Task, other: Task) -> bool:
    """Without devices a share means nothing, and neither do models."""
    if one.gpus == 0 or other.gpus == 0:
        return (one.gpus, one.cpu) == (other.gpus, other.cpu)
    return one == other


def test_an_exact_fit_costs_nothing_that_typical_arrivals_could_use():
    """One device has 400 left, another 500; the mix asks for 500 and 400: each goes where it fills."""
    mix = [(Task(1, 500, 0, ()), 0.5), (Task(1, 400, 0, ()), 0.5)]
    columns = columns_from([(96_000, [Device("T4", 500), Device("T4", 400)])])
    for share, device in ((400, 1), (500, 0)):
        ranking = policy_for(mix).rank(columns, a_shape(1, milligpu=share, cpu=0), np.array([0]), 0)
        assert ranking.device[0] == device


def test_a_device_that_nothing_typical_can_use_is_used_up_first():
    """A share of 100 does no harm to a device with 150 left that the mix's 200 cannot use."""
    columns = columns_from([(96_000, [Device("T4", 1000)]), (96_000, [Device("T4", 150)])])
    ranking = policy_for([(Task(1, 200, 0, ()), 1.0)]).rank(
        columns, a_shape(1, milligpu=100, cpu=0), np.array([0, 1]), 0
    )
    assert ranking.score[1] == 100 * SEQUENCES
    assert ranking.score[0] < 0  # of the 900 left, 100 go to waste that did not before


def test_a_cpu_only_job_goes_where_the_gpus_do_not_miss_the_cpu():
    """Four whole-device jobs of 4 CPUs: 16 CPUs are just enough, 32 leave half over."""
    four = [Device("T4", 1000)] * 4
    columns = columns_from([(16_000, four), (32_000, four)])
    ranking = policy_for([(WHOLE, 1.0)]).rank(columns, a_shape(0, cpu=8000), np.array([0, 1]), 0)
    assert ranking.score.tolist() == [-2000 * SEQUENCES, 0]


def test_cpu_only_arrivals_are_looked_ahead_to():
    """Two thirds of the arrivals take CPU alone, so a node with CPU for two GPU jobs keeps GPUs unused."""
    left, model, cpu = arrays([(8_000, [Device("T4", 1000)] * 2)])
    gpu_only, mixed = [(WHOLE, 1.0)], [(WHOLE, 0.25), (Task(0, 1000, 4000, ()), 0.75)]
    assert unused(arrivals_of(table_of_tasks(gpu_only)), left, model, cpu).tolist() == [0]
    assert unused(arrivals_of(table_of_tasks(mixed)), left, model, cpu)[0] > SEQUENCES * 1000


def test_the_places_of_devices_make_no_difference():
    rng = random.Random(3)
    arrivals = arrivals_of(table_of_tasks(some_mix(rng)))
    for _ in range(20):
        cpu, devices = some_node(rng)
        turned = [(cpu, rng.sample(devices, len(devices))), (cpu, devices)]
        assert len(set(unused(arrivals, *arrays(turned)).tolist())) == 1


def test_an_empty_mix_scores_by_the_room_taken():
    """Nothing is expected to come, so whatever is taken is no longer unused: equal everywhere."""
    columns = columns_from([(96_000, [Device("T4", 1000)] * 2), (8_000, [Device("T4", 700)])])
    ranking = policy_for([]).rank(columns, a_shape(1, milligpu=300), np.array([0, 1]), 0)
    assert len(set(ranking.score.tolist())) == 1


# -- holding back


def some_fleet(rng: random.Random) -> list[twin.HeldNode]:
    kinds = [(rng.choice((*MODELS, None)), rng.choice((1, 2, 4, 8)), rng.choice((64_000, 96_000))) for _ in range(4)]
    fleet = []
    for _ in range(rng.choice((3, 30, 90))):
        model, size, capacity = rng.choice(kinds)
        whole = rng.random() < 0.3
        left = tuple(1000 if whole else rng.choice((0, 0, 200, 1000)) for _ in range(size))
        cpu = rng.choice((capacity, capacity, capacity * 15 // 16, capacity * 15 // 16 - 1))
        running = {each: rng.choice((0, 0, 1)) for each in (2, 4, 8)}
        fleet.append(twin.HeldNode(model, left, cpu, capacity, running, open=rng.random() < 0.9))
    return fleet


def columns_of_fleet(fleet: list[twin.HeldNode]):
    every = [a_node(model, 1, model, cpu_allocatable_millicores=1) for model in MODELS]
    built = [
        a_node(
            f"n{at}",
            [a_gpu(i, node.model) for i in range(len(node.left))],
            cpu_allocatable_millicores=node.cpu_capacity,
            block_causes=() if node.open else ("cordoned",),
        )
        for at, node in enumerate(fleet)
    ]
    columns = columns_of(book(a_snapshot(*built, *every)))
    columns.left[len(fleet) :] = 0  # nodes that only make every model known
    for row, node in enumerate(fleet):
        columns.left[row, : len(node.left)] = node.left if node.open else 0
        columns.cpu_free[row] = node.cpu_free
        columns.running[row] = 0
        for size, count in node.running.items():
            columns.running[row, size] = count
    full = [twin.HeldNode(model, (0,), 1, 1, {}) for model in MODELS]
    return columns, [*fleet, *full]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_held_back_agrees_with_the_twin_in_both_forms(seed):
    rng = random.Random(seed)
    columns, fleet = columns_of_fleet(some_fleet(rng))
    mix = some_mix(rng)
    table, policy = table_of_tasks(mix), policy_for(mix)
    state, scalar_mix = state_of(columns, table, np.arange(len(fleet)), holds=True), mix_of(table)
    for _ in range(4):
        task = some_task(rng)
        shape = shape_of(task)
        expected, takes = twin.held_levels(fleet, task, mix), [node.open for node in fleet]
        assert policy.held(columns, shape)[takes].tolist() == expected
        policy.kernel()(state, scalar_mix, ask_at(asks_of(columns, [shape]), 0, 0), HOLD, 0, 0, policy.tables)
        assert state.holding.level[takes].tolist() == expected


def fleet_of(whole: int, nodes: int = 100, model: str = "T4", running: int = 0) -> list[twin.HeldNode]:
    """`nodes` of eight devices, `whole` of them free, `running` running a whole-node job, the others half in use."""
    free, half = (1000,) * 8, (1000,) * 4 + (0,) * 4
    return [
        twin.HeldNode(
            model,
            free if at < whole else (0,) * 8 if at < whole + running else half,
            96_000 if at < whole else 0,
            96_000,
            {8: 1} if whole <= at < whole + running else {},
        )
        for at in range(nodes)
    ]


def levels(fleet: list[twin.HeldNode], shape, mix=((WHOLE, 1.0),)) -> list[int]:
    columns, _ = columns_of_fleet(fleet)
    return policy_for(list(mix)).held(columns, shape).tolist()[: len(fleet)]


def test_whole_nodes_go_last_when_few_are_left_and_the_very_last_not_at_all():
    assert set(levels(fleet_of(whole=80, running=4), a_shape(1))) == {TAKE}
    few = levels(fleet_of(whole=6, running=10), a_shape(1))
    assert few[:6] == [LAST] * 6
    assert set(few[6:]) == {TAKE}
    assert levels(fleet_of(whole=5, running=10), a_shape(1))[:5] == [NEVER] * 5


@pytest.mark.parametrize("shape", [a_shape(8), a_shape(16)])
def test_jobs_that_take_whole_nodes_are_held_back_from_nothing(shape):
    assert set(levels(fleet_of(whole=5, running=10), shape)) == {TAKE}


@pytest.mark.parametrize("shape", [a_shape(0), a_shape(1, milligpu=100), a_shape(4)])
def test_all_smaller_jobs_are_held_back_cpu_only_ones_too(shape):
    assert levels(fleet_of(whole=5, running=10), shape)[:5] == [NEVER] * 5


def test_a_small_cluster_refuses_nothing():
    for whole in range(19):
        assert max(levels(fleet_of(whole=whole, nodes=19, running=1), a_shape(1))) < NEVER


def test_system_pods_leave_a_node_whole():
    fleet = fleet_of(whole=5, running=10)
    small, large = (replace(fleet[0], cpu_free=cpu) for cpu in (90_000, 89_999))
    assert levels([small, *fleet[1:]], a_shape(1))[0] == NEVER
    assert levels([large, *fleet[1:]], a_shape(1))[0] == TAKE


def test_no_kind_of_whole_node_is_used_up_before_the_others():
    """Half of the common kind is in use and three quarters of the rare one: the rare one waits."""
    common, rare = fleet_of(whole=200, nodes=400), fleet_of(whole=25, nodes=100)
    rare = [replace(node, cpu_capacity=128_000, cpu_free=128_000 if at < 25 else 0) for at, node in enumerate(rare)]
    found = levels([*common, *rare], a_shape(1))
    assert set(found[:400]) == {TAKE}
    assert found[400:425] == [LAST] * 25


def test_a_model_is_held_back_from_those_who_accept_more():
    """Half of the demand accepts T4 alone, and T4 is a third of what is free."""
    fleet = [twin.HeldNode(model, (1000,), 8_000, 8_000, {}) for model in ("T4", "H100-80", "A100-80") * 10]
    mix = ((WHOLE, 0.5), (Task(1, 1000, 4000, ("T4",)), 0.5))
    assert levels(fleet, a_shape(1), mix)[:3] == [LAST, TAKE, TAKE]
    assert levels(fleet, a_shape(1, gpu_models=("T4",)), mix)[:3] == [TAKE, TAKE, TAKE]
    assert levels(fleet, a_shape(1, gpu_models=("A100-80", "T4")), mix)[:3] == [LAST, TAKE, TAKE]
    assert levels(fleet, a_shape(0), mix)[:3] == [TAKE, TAKE, TAKE]
    assert levels(fleet, a_shape(1))[:3] == [TAKE, TAKE, TAKE]


def test_streams_leave_alone_what_is_held_back_and_what_ifs_show_it():
    """Forty nodes, 38 taken by whole-node jobs: the last two wait for such jobs, also when nothing else is free."""
    nodes = [a_node(f"n{at:02d}", 8) for at in range(40)]
    running = [a_job(f"r{at}", node=f"n{at:02d}", devices=list(range(8))) for at in range(38)]
    snapshot = a_snapshot(*nodes, jobs=running)
    jobs = [a_job("small", shape=a_shape(1)), a_job("large", shape=a_shape(8))]
    small, large = place_stream(snapshot, jobs, "gpuwatch").jobs[-2:]
    assert (small.phase, large.phase) == ("pending", "running")
    assert [job.phase for job in place_stream(snapshot, jobs, "fgd").jobs[-2:]] == ["running", "running"]
    columns = columns_of(book(snapshot))
    assert len(Placer(columns, table_of_tasks([(WHOLE, 1.0)]), "gpuwatch").ranked(a_shape(1))) == 2


# -- the lead


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize(("workload", "lead"), [("default", 0.3), ("gpuspec33", 0.3)])
def test_it_leads_fgd_on_the_published_lists(traces, workload, lead):
    """Two seeds of ten; the whole table is in the decision record. Means over ten seeds lead by 0.7 and more."""
    field = field_of(read_openb(traces / "openb", workload))
    for seed in (42, 43):
        own, fgd = (replay_arrivals(field, name, seed=seed, inflate=1.3) for name in ("gpuwatch", "fgd"))
        assert 100 * (own.allocation_ratio_at_100 - fgd.allocation_ratio_at_100) > lead
        assert 100 * (own.allocation_ratio_at_130 - fgd.allocation_ratio_at_130) > lead
        admitted = [next(a.admitted for a in run.admission if a.size == "8") for run in (own, fgd)]
        assert admitted[0] >= admitted[1]


@pytest.mark.parametrize("rare", [0.001, 0.003, 0.02])
def test_a_rare_shape_comes_as_often_as_the_mix_says(rare):
    """Drawn starting points could miss it in every sequence, and the nodes that it needs would look worthless."""
    common, seldom = Task(1, 500, 4000, ()), Task(8, 1000, 64_000, ())
    arrivals = arrivals_of(table_of_tasks([(common, 1 - rare), (seldom, rare)]))
    drawn = arrivals.order.size
    assert (arrivals.gpus[arrivals.order] == 8).sum() == pytest.approx(rare * drawn, abs=1)
