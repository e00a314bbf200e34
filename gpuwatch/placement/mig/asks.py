"""What is asked for: by hand, or by the MIG jobs that wait. Training is kept off MIG unless told otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from gpuwatch.demand.series import asked
from gpuwatch.errors import InputError
from gpuwatch.model.catalogue import MigGeometry
from gpuwatch.model.history import ALL_POOLS
from gpuwatch.model.mig import MigAsk
from gpuwatch.model.snapshot import ClusterSnapshot

MAX_INSTANCES = 100_000  # of one ask: more is a slip of the pen
TRAINING = "training"


def asks_of(demand: Mapping[str, int]) -> tuple[MigAsk, ...]:
    """One ask per profile, in the order given. InputError for a count below 0 or beyond any cluster."""
    for profile, count in demand.items():
        if not 0 <= count <= MAX_INSTANCES:
            raise InputError(
                f"{count} instances of {profile} cannot be planned",
                tried=f"a count is from 0 to {MAX_INSTANCES}",
                todo="correct the demand",
            )
    return tuple(MigAsk(profile=profile, count=count) for profile, count in demand.items() if count)


def waiting_asks(snapshot: ClusterSnapshot, allow_training: bool = False) -> tuple[tuple[MigAsk, ...], tuple[str, ...]]:
    """The asks of all MIG jobs that wait, joined where pool, models and profile are the same; and the ids of training
    jobs that were left out. A gated job asks for nothing yet."""
    counts: dict[tuple[str, str | None, tuple[str, ...]], int] = defaultdict(int)
    jobs: dict[tuple[str, str | None, tuple[str, ...]], list[str]] = defaultdict(list)
    kept_off: list[str] = []
    for part in asked(snapshot):
        shape = part.job.shape
        if part.state != "pending" or not shape.mig_profile or shape.gpus <= 0:
            continue
        if part.job.kind == TRAINING and not allow_training:
            kept_off.append(part.job.id)
            continue
        key = shape.mig_profile, None if part.pool == ALL_POOLS else part.pool, shape.gpu_models
        counts[key] += part.members * shape.gpus
        jobs[key].append(part.job.id)
    found = tuple(
        MigAsk(profile=key[0], count=counts[key], pool=key[1], gpu_models=key[2], jobs=tuple(sorted(jobs[key])))
        for key in sorted(counts, key=lambda key: (key[0], key[1] or "", key[2]))
    )
    return found, tuple(sorted(kept_off))


def check_profiles(asks: Iterable[MigAsk], geometries: Mapping[str, Iterable[MigGeometry]]) -> None:
    """Raises InputError for a profile that no card here has, and says which there are. `geometries`: by model."""
    names = {model: {p.name for cut in cuts for p in cut.profiles} for model, cuts in geometries.items()}
    for ask in asks:
        if not any(ask.profile in known for known in names.values()):
            told = "; ".join(f"{model}: {', '.join(sorted(known))}" for model, known in sorted(names.items()))
            raise InputError(
                f"no card here has a MIG profile called {ask.profile}",
                tried=f"the profiles of {told}",
                todo="name a profile of one of these cards; sizes differ from card to card",
            )
