"""What is asked for: by hand, or by the MIG jobs that wait. Training is kept off MIG unless told otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from gpuwatch.demand.series import asked
from gpuwatch.errors import InputError
from gpuwatch.model.catalogue import MigGeometry
from gpuwatch.model.history import ALL_POOLS
from gpuwatch.model.jobs import Job
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
    parts: list[tuple[Job, str, int]] = []
    kept_off: list[str] = []
    for part in asked(snapshot):
        if part.state != "pending" or not part.job.shape.mig_profile:
            continue
        if part.job.kind == TRAINING and not allow_training:
            kept_off.append(part.job.id)
        else:
            parts.append((part.job, part.pool, part.members))
    return joined(parts), tuple(sorted(kept_off))


def joined(waiting: Iterable[tuple[Job, str, int]]) -> tuple[MigAsk, ...]:
    """The asks of jobs with the pool that they want and their waiting members; those that want the same are one ask."""
    found: dict[tuple[str, str, tuple[str, ...], int], list[tuple[str, int]]] = defaultdict(list)
    for job, pool, members in waiting:
        shape = job.shape
        if shape.mig_profile and shape.gpus > 0 and members:
            key = shape.mig_profile, "" if pool == ALL_POOLS else pool, shape.gpu_models, shape.gpus
            found[key].append((job.id, members * shape.gpus))
    return tuple(
        MigAsk(
            profile=profile,
            count=sum(count for _, count in parts),
            together=gpus,
            pool=pool or None,
            gpu_models=models,
            jobs=tuple(sorted({job for job, _ in parts})),
        )
        for (profile, pool, models, gpus), parts in sorted(found.items())
    )


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
