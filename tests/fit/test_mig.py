"""MIG geometry: published counts of layouts, the traps of placement, and what a device could still take."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.fit.booking import book
from gpuwatch.fit.mig import Slot, arrangements, creatable, geometry_of, layouts, maximal_layouts, starts, taken_by
from gpuwatch.model.catalogue import cards
from gpuwatch.model.cluster import MigInstance
from gpuwatch.model.jobs import DeviceShare, Job, Member
from gpuwatch.model.units import MIB
from tests.builders import a_gpu, a_job, a_node, a_shape, a_snapshot
from tests.placement.mig.clusters import NAMES, an_instance
from tests.reference import mig as plain

H100 = cards()["H100-80"].mig
FIVE = ("1g", "2g", "3g", "4g", "7g")
SIX = ("1g", "1g_double", "2g", "3g", "4g", "7g")
CUT = [found for found in cards().values() if found.mig]


@pytest.mark.parametrize(("kinds", "counts"), [(FIVE, (298, 19, 14)), (SIX, (723, 78, 38))])
def test_counts_of_layouts(kinds, counts):
    """Against the published counts, and state by state against brute force."""
    names = tuple(NAMES[kind] for kind in kinds)
    every, most = layouts(H100, names), maximal_layouts(H100, names)
    assert (len(every), len(most), len({tuple(sorted(s.profile for s in layout)) for layout in most})) == counts
    states, maximal = plain.states(kinds), plain.maximal(kinds)
    assert (len(states), len(maximal), len(plain.multisets(maximal))) == counts
    for ours, theirs in ((every, states), (most, maximal)):
        assert {frozenset((s.profile, s.start) for s in layout) for layout in ours} == {
            frozenset((NAMES[kind], start) for kind, start in state) for state in theirs
        }


def test_a_3g_at_the_start_blocks_the_4g():
    assert starts(H100, [Slot(0, "3g.40gb")], "4g.40gb") == ()
    assert starts(H100, [Slot(4, "3g.40gb")], "4g.40gb") == (0,)


def test_slices_that_add_up_and_cannot_be_placed():
    """Four doubled 1g and three 1g are seven compute slices; the doubled ones leave no memory slice."""
    names = ("1g.20gb",) * 4 + ("1g.10gb",) * 3
    assert sum(H100.profile(name).compute_slices for name in names) == 7
    assert tuple(sorted(names)) not in {
        tuple(sorted(s.profile for s in layout)) for layout in layouts(H100, ("1g.10gb", "1g.20gb"))
    }


@pytest.mark.parametrize("found", CUT, ids=lambda found: found.id)
def test_no_layout_of_any_card_overlaps(found):
    kinds = tuple(profile.name for profile in found.mig.profiles if not profile.name.endswith(("gfx", "-me")))
    for layout in layouts(found.mig, kinds):
        profiles = [found.mig.profile(slot.profile) for slot in layout]
        runs = [{*range(s.start, s.start + p.memory_slices)} for s, p in zip(layout, profiles, strict=True)]
        assert not any(one & other for one, other in combinations(runs, 2))
        assert all(max(run) < found.mig.memory_slices for run in runs)
        assert sum(p.compute_slices for p in profiles) <= found.mig.compute_slices
        assert sum(p.media_extensions for p in profiles) <= 1
        assert taken_by(found.mig, layout) is not None


@pytest.mark.parametrize("found", CUT, ids=lambda found: found.id)
def test_as_many_of_one_profile_as_the_maker_says(found):
    most = {1: 7, 2: 3, 3: 2, 4: 1, 7: 1} if found.mig.compute_slices == 7 else {1: 4, 2: 2, 4: 1}
    for profile in found.mig.profiles:
        doubled = found.mig.memory_slices == 8 and profile.compute_slices == 1 and profile.memory_slices == 2
        expected = 1 if profile.media_extensions else 4 if doubled else most[profile.compute_slices]
        assert max(map(len, layouts(found.mig, (profile.name,)))) == expected


@given(st.lists(st.tuples(st.sampled_from(SIX), st.integers(-1, 8)), max_size=4))
def test_a_layout_is_legal_exactly_when_brute_force_says_so(placed):
    state = frozenset(placed)
    layout = [Slot(start, NAMES[kind]) for kind, start in placed]
    legal = len(state) == len(placed) and plain.legal(state)
    assert (taken_by(H100, layout) is not None) == legal
    if legal:
        for kind in SIX:
            free = [
                at for at in plain.EIGHTHS[kind][2] if (kind, at) not in state and plain.legal(state | {(kind, at)})
            ]
            assert list(starts(H100, layout, NAMES[kind])) == free


def test_starts_that_nobody_tells_give_every_arrangement():
    told = [an_instance(1, "3g.40gb", 0), an_instance(2, "1g.10gb", 6)]
    assert arrangements(H100, told) == ((Slot(0, "3g.40gb"), Slot(6, "1g.10gb")),)
    untold = [an_instance(1, "3g.40gb", None), an_instance(2, "3g.40gb", None)]
    assert arrangements(H100, untold) == ((Slot(0, "3g.40gb"), Slot(4, "3g.40gb")),)
    assert len(arrangements(H100, [an_instance(i, "1g.10gb", None) for i in range(3)])) == 35  # 3 of 7 places
    assert arrangements(H100, [an_instance(1, "4g.40gb", 0), an_instance(2, "3g.40gb", 0)]) == ()
    assert arrangements(H100, []) == ((),)


def cut_node(*instances: MigInstance, held: tuple[str, ...] = (), jobs: tuple[Job, ...] = (), **fields):
    gpu = a_gpu(0, mig_enabled=True, mig_instances=instances, **fields)
    by_id = {each.id: each for each in instances}
    bound = [
        Job(
            id=f"ml/on-{id_}",
            name=f"on-{id_}",
            shape=a_shape(mig_profile=by_id[id_].profile),
            members=(
                Member(
                    name="m",
                    node="n1",
                    devices_known=True,
                    shares=(DeviceShare(gpu_index=0, milligpu=0, mig_instance=id_),),
                ),
            ),
        )
        for id_ in held
    ]
    return book(a_snapshot(a_node("n1", [gpu]), jobs=[*bound, *jobs])).nodes["n1"]


def test_creatable_beside_what_is_held_and_over_what_is_idle():
    small, large = an_instance(3, "1g.10gb", 0), an_instance(4, "3g.40gb", 4)
    assert creatable(cut_node(small, large, held=("3", "4")), 0, "2g.20gb") == (2,)
    assert creatable(cut_node(small, large, held=("3", "4")), 0, "3g.40gb") == ()
    assert creatable(cut_node(small, large, held=("4",)), 0, "4g.40gb") == (0,)
    assert creatable(cut_node(small, large), 0, "7g.80gb") == (0,)
    assert creatable(cut_node(), 0, "9g.80gb") == ()


def test_a_start_counts_only_when_it_is_free_in_every_arrangement():
    untold = an_instance(3, "3g.40gb", None)
    assert creatable(cut_node(untold, held=("3",)), 0, "4g.40gb") == ()
    small = an_instance(3, "4g.40gb", None)  # has one place
    assert creatable(cut_node(small, held=("3",)), 0, "3g.40gb") == (4,)


def test_what_may_be_held_is_not_deleted():
    """A job that holds some 1g of the node, nobody says which, keeps every 1g there."""
    pair = (an_instance(3, "1g.10gb", 0), an_instance(4, "1g.10gb", 1), an_instance(5, "3g.40gb", 4))
    guess = a_job("somewhere", "n1", shape=a_shape(mig_profile="1g.10gb"))
    assert creatable(cut_node(*pair, jobs=(guess,)), 0, "4g.40gb") == ()
    assert creatable(cut_node(*pair, jobs=(guess,)), 0, "3g.40gb") == (4,)
    unseen = an_instance("unseen-0", "7g.80gb", 0)
    assert creatable(cut_node(unseen), 0, "1g.10gb") == ()


def test_devices_that_take_no_work_or_are_not_cut():
    assert creatable(cut_node(health="unhealthy"), 0, "1g.10gb") == ()
    cordoned = book(a_snapshot(a_node("n1", [a_gpu(0, mig_enabled=True)], block_causes=("cordoned",)))).nodes["n1"]
    assert creatable(cordoned, 0, "1g.10gb") == ()
    whole = book(a_snapshot(a_node("n1", 2), jobs=[a_job("j", "n1", [0])])).nodes["n1"]
    assert creatable(whole, 1, "7g.80gb") == ()
    assert creatable(whole, 1, "7g.80gb", enable_mig=True) == (0,)
    assert creatable(whole, 0, "7g.80gb", enable_mig=True) == ()
    shared = book(a_snapshot(a_node("n1", [a_gpu(0, replicas=4)]))).nodes["n1"]
    assert creatable(shared, 0, "7g.80gb", enable_mig=True) == ()
    t4 = book(a_snapshot(a_node("n1", 1, "T4"))).nodes["n1"]
    assert creatable(t4, 0, "1g.10gb", enable_mig=True) == ()


@pytest.mark.parametrize(
    ("model", "total_mib", "seen", "profile"),
    [
        ("B200", None, (), "7g.180gb"),
        ("B200", 183359, (), "7g.180gb"),
        ("B200", 196000, (), "7g.192gb"),
        ("B200", None, ("1g.24gb",), "3g.96gb"),
        ("GB200", 189471, (), "3g.93gb"),
        ("GB200", 193000, (), "3g.95gb"),
        ("GB200", None, ("7g.189gb",), "4g.95gb"),
    ],
)
def test_profiles_are_called_as_the_device_reports_them(model, total_mib, seen, profile):
    cut = tuple(
        MigInstance(id=str(at), profile=name, compute_slices=int(name[0]), memory_slices=1)
        for at, name in enumerate(seen)
    )
    total = total_mib * MIB if total_mib else None
    found = geometry_of(a_gpu(0, model, memory_total_bytes=total, mig_enabled=True, mig_instances=cut))
    assert found is not None
    assert found.profile(profile) is not None


def test_every_pair_of_sizes_of_a_card_has_the_same_shape():
    for found, other in product(CUT, CUT):
        if (found.mig.compute_slices, found.mig.memory_slices) == (other.mig.compute_slices, other.mig.memory_slices):
            assert [p.placements for p in found.mig.profiles] == [p.placements for p in other.mig.profiles]
