"""The best ways to place a request within one field, best first, each on its own set of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuwatch.fit.columns import IntArray
from gpuwatch.model.placement import PlacementRequest
from gpuwatch.placement.kernels.arrays import INFEASIBLE
from gpuwatch.placement.placer import Placer, Spot
from gpuwatch.placement.policy import ANY_DEVICE
from gpuwatch.placement.what_if.frozen import Scores
from gpuwatch.placement.what_if.ladder import Ladder
from gpuwatch.placement.what_if.question import Field

_TRIES_PER_CHOICE = 10  # starts tried for one choice before equal sets of nodes end the search
# Members placed for all starts together: a gang of thousands gets fewer choices, and its answer does not take minutes.
_MEMBERS_TRIED = 20_000
_MEMBERS_TRIED_ANEW = 2_000  # by a policy that is asked about all nodes for every member

Key = tuple[int, int, int, int, int]  # place of the card, -score, room of the node, room of the device, row


@dataclass(frozen=True, slots=True)
class Draft:
    """One way; `key` ranks it among those of all fields, lowest first."""

    key: Key
    spots: list[Spot]


def drafts(field: Field, request: PlacementRequest, place: IntArray | None) -> list[Draft]:
    """At most request.top drafts. place: (N,) of each node's card among the choices, see Cards.places; None: equal."""
    frozen, shape = field.frozen, field.shape
    scores = frozen.scores(request.policy, shape)
    places = np.zeros(len(scores.score), dtype=np.int64) if place is None else place
    shared = scores.device != ANY_DEVICE
    device_room = np.where(shared, frozen.columns.left[np.arange(len(shared)), scores.device], 0)
    keys = (places, -scores.score, frozen.node_room, device_room)
    starts = first(keys, np.flatnonzero(field.rows & (scores.score != INFEASIBLE)), request.top * _TRIES_PER_CHOICE)
    found: list[Draft] = []
    seen: set[tuple[int, ...]] = set()
    for start, spots in _gangs(field, request, scores, places, starts):
        nodes = tuple(sorted(spot.row for spot in spots))
        if spots and nodes not in seen:
            seen.add(nodes)
            key = (*(int(each[start]) for each in keys), int(start))
            found.append(Draft(key, spots))  # type: ignore[arg-type]
        if len(found) == request.top:
            break
    return found


def first(keys: tuple[IntArray, ...], rows: IntArray, count: int) -> IntArray:
    """The `count` first of `rows` by `keys` ((N,) each, the most important one first) and then by row, in order.

    Rows that cannot be among them are dropped key by key, which is quicker than sorting all.
    """
    surely: list[IntArray] = []
    for key in keys:
        if len(rows) <= count:
            break
        values = key[rows]
        bound = np.partition(values, count - 1)[count - 1]
        inside = rows[values < bound]
        surely.append(inside)
        rows, count = rows[values == bound], count - len(inside)
    chosen = np.concatenate([*surely, np.sort(rows)[:count]])
    return chosen[np.lexsort((chosen, *(key[chosen] for key in reversed(keys))))]


def _gangs(
    field: Field, request: PlacementRequest, scores: Scores, places: IntArray, starts: IntArray
) -> Iterator[tuple[int, list[Spot]]]:
    policy = field.frozen.policy(request.policy)
    starts = starts[: max(1, (_MEMBERS_TRIED if policy.local else _MEMBERS_TRIED_ANEW) // request.members)]
    if not policy.local:
        yield from _placed_one_by_one(field, request, starts)
        return
    for chunk in _chunks(starts, request):
        rows, home = _candidates(field, request, scores, places, chunk)
        part = Scores(scores.score[rows], scores.device[rows])
        ladder = Ladder(field.frozen.columns, policy, field.shape, rows, part, places[rows])
        for start in chunk:
            at = int(np.searchsorted(rows, start))
            yield int(start), ladder.gang(at, request.members, np.flatnonzero(home == home[at]))


def _chunks(starts: IntArray, request: PlacementRequest) -> Iterator[IntArray]:
    """Starts in portions: the first as many as choices are wanted, as most often no more are looked at."""
    yield starts[: request.top]
    if request.members > 1:  # alone, each start is a set of nodes of its own
        yield starts[request.top :]


def _candidates(
    field: Field, request: PlacementRequest, scores: Scores, places: IntArray, starts: IntArray
) -> tuple[IntArray, IntArray]:
    """(rows, home): the sorted nodes that the members may go to, and the domain that each is in, 0 where there is none.

    In each domain of a start: the starts, and as many of the best as there are members. A gang needs no node beyond
    these, as each takes one member at least.
    """
    if request.members == 1:
        rows = np.unique(starts)
        return rows, rows  # alone: nobody to be joined by
    open_rows = np.flatnonzero(field.rows & (scores.score != INFEASIBLE))
    home = np.zeros(len(field.rows), dtype=np.int64) if field.domain is None else field.domain
    kept = [starts]
    for each in np.unique(home[starts]):
        mine = open_rows[home[open_rows] == each]
        kept.append(first((places, -scores.score), mine, request.members))
    rows = np.unique(np.concatenate(kept))
    return rows, home[rows]


def _placed_one_by_one(field: Field, request: PlacementRequest, starts: IntArray) -> Iterator[tuple[int, list[Spot]]]:
    """For policies whose scores depend on other nodes, or on chance: every member is scored anew on all nodes."""
    placer = Placer(field.frozen.columns.copy(), field.frozen.table, request.policy)
    spots = {spot.row: spot for spot in placer.ranked(field.shape, field.rows)}
    for start in starts:
        allowed = field.rows if field.domain is None else field.rows & (field.domain == field.domain[start])
        placer.take(spots[int(start)])
        others = placer.take_gang(field.shape, request.members - 1, allowed)
        whole = len(others) == request.members - 1
        yield int(start), [spots[int(start)], *others] if whole else []
        for spot in reversed([spots[int(start)], *others]):
            placer.undo(spot)
