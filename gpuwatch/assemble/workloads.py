"""What kind of work a pod is, by labels that the site allows and by the kind of object that owns it."""

from __future__ import annotations

from typing import get_args

from gpuwatch.assemble.settings import AssembleSettings
from gpuwatch.model import catalogue
from gpuwatch.model.jobs import JobKind
from gpuwatch.model.observations import PodRecord

KINDS: frozenset[str] = frozenset(get_args(JobKind))

# Owners that say what they run. Deployments, ReplicaSets and StatefulSets run anything: they stay unknown.
OWNER_KINDS: dict[str, JobKind] = {
    "PyTorchJob": "training",
    "TFJob": "training",
    "MPIJob": "training",
    "XGBoostJob": "training",
    "PaddleJob": "training",
    "JAXJob": "training",
    "TrainJob": "training",
    "VolcanoJob": "training",
    "InferenceService": "inference",
    "LeaderWorkerSet": "inference",
    "DynamoGraphDeployment": "inference",
    "NIMService": "inference",
    "Notebook": "interactive",
    "Workspace": "interactive",
    "Job": "batch",
    "CronJob": "batch",
    "Workflow": "batch",
}

# Owners whose pods only make sense together. Pods of a Deployment, a StatefulSet or a plain Job start and end alone.
GANG_OWNERS = frozenset({"PyTorchJob", "TFJob", "MPIJob", "PaddleJob", "JAXJob", "TrainJob", "VolcanoJob"})

_POOL_SELECTORS = ("gpuwatch_io_pool", "cloud_google_com_gke_nodepool", "eks_amazonaws_com_nodegroup", "agentpool")
_MODEL_SELECTOR = "nvidia_com_gpu_product"


def kind_of(pod: PodRecord, settings: AssembleSettings) -> JobKind:
    """The kind, or "unknown": nothing is guessed from a name."""
    for label in settings.kind_labels:
        if (text := pod.labels.get(label, "").lower()) in KINDS:
            return text  # type: ignore[return-value]
    return OWNER_KINDS.get(pod.owner_kind or "", "unknown")


def owner_of(pod: PodRecord) -> str | None:
    """ "Kind/name" of the owner."""
    return f"{pod.owner_kind}/{pod.owner_name}" if pod.owner_kind and pod.owner_name else None


def gang_of(pod: PodRecord) -> str | None:
    """The gang that the pod belongs to, within its namespace; None for a pod that stands alone."""
    return owner_of(pod) if pod.owner_kind in GANG_OWNERS else None


def asked_pool(pod: PodRecord, settings: AssembleSettings) -> str | None:
    """The pool that a pod asks for, by its node selectors or its own label."""
    named = [pod.selectors.get(name) for name in _POOL_SELECTORS] + [
        pod.labels.get(name) for name in settings.pool_labels
    ]
    return next((text for text in named if text), None)


def asked_models(pod: PodRecord) -> tuple[str, ...]:
    """Catalogue ids that a pod's node selector accepts; the selector's own text where the catalogue has no card."""
    product = pod.selectors.get(_MODEL_SELECTOR)
    if not product:
        return ()
    card = catalogue.match(product)
    return (card.id if card else product,)


def is_protected(pod: PodRecord, settings: AssembleSettings) -> bool:
    """Did its owner ask that it is not moved?"""
    return any(pod.labels.get(label, "").lower() == "true" for label in settings.protect_labels)
