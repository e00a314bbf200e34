"""Requested GPUs over time, from range queries: what the store remembers of days when it did not run yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from gpuwatch.assemble.offer import device_slices, profile_slices
from gpuwatch.assemble.resources import COUNTED, MILLI_PER_DEVICE, SHARED, WHOLE, mig_profile
from gpuwatch.assemble.workloads import KINDS, OWNER_KINDS
from gpuwatch.dialects.dialect import observe
from gpuwatch.dialects.labels import MOVED
from gpuwatch.errors import SourceError
from gpuwatch.model.history import ALL_POOLS, DemandSeries, History
from gpuwatch.model.observations import NodeRecord, Sample
from gpuwatch.model.units import HOUR_SECONDS, MILLI
from gpuwatch.sources.prometheus.client import PrometheusClient, Row
from gpuwatch.sources.prometheus.queries import names, selectors
from gpuwatch.sources.settings import PrometheusSettings

_KIND = "label_gpuwatch_io_kind"
_EVERY_KIND = "all"
_PLAIN = "|".join([*WHOLE, *SHARED, "nvidia_com_mig_.*"])
_NODE_FACTS = ("kube_node_labels",)

_KindReader = Callable[[Row], str]
# (pool, kind) -> hour (Unix seconds) -> GPUs
Points = dict[tuple[str, str], dict[int, float]]


def demand_history(client: PrometheusClient, settings: PrometheusSettings, now: datetime, hours: int) -> History:
    """Demand at each full UTC hour before `now`; each value stands for the hour that it begins.

    An hour at which kube-state-metrics was not there is None; pods without a kind label or a telling owner count only
    in "all" and "unknown". Node pools and replicas are those of `now`. SourceError when the totals cannot be read.
    """
    end = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    hours = max(1, hours)
    start = end - timedelta(hours=hours - 1)
    nodes = _nodes(client, settings, now)
    spelled = _spelling(client, settings, now)
    points: Points = defaultdict(lambda: defaultdict(float))
    seen: set[int] = set()
    for first, last in _chunks(start, end, settings.history_chunk_hours):
        for row in client.range("history_seen", _seen(settings), first, last, HOUR_SECONDS):
            seen.update(round(at) for at, count in row.points if count > 0)
        for kind_of, query, text in _demand_queries(settings.matchers, spelled):
            try:
                rows = client.range(query, text, first, last, HOUR_SECONDS)
            except SourceError:
                if query == "history_total":
                    raise
                continue  # a server without pod labels still knows the totals
            for row in rows:
                name = row.labels.get(spelled["node"], "")
                node = nodes.get(name)
                _add(points, row, _pool(name, node, settings.assemble.pool_labels), kind_of(row), node)
    return History(series=tuple(_series(points, seen, start, hours)))


def _nodes(client: PrometheusClient, settings: PrometheusSettings, now: datetime) -> dict[str, NodeRecord]:
    rows = client.instant("history_nodes", names(_NODE_FACTS, settings.matchers), now)
    samples = [Sample(metric=row.metric, labels=row.labels, value=row.points[-1][1]) for row in rows]
    return {record.name: record for record in observe(samples).nodes}


def _chunks(start: datetime, end: datetime, chunk_hours: int) -> Iterator[tuple[datetime, datetime]]:
    while start <= end:
        last = min(end, start + timedelta(hours=chunk_hours - 1))
        yield start, last
        start = last + timedelta(hours=1)


def _seen(settings: PrometheusSettings) -> str:
    return f"count(kube_node_info{{{selectors(settings.matchers)}}})"


def _spelling(client: PrometheusClient, settings: PrometheusSettings, now: datetime) -> dict[str, str]:
    """The labels' names as stored: a scraper that does not honor labels has moved them aside."""
    text = f"topk(20, kube_pod_container_resource_requests{{{selectors(settings.matchers)}}})"
    seen = {name for row in client.instant("history_labels", text, now) for name in row.labels}
    return {name: MOVED + name if MOVED + name in seen else name for name in ("namespace", "pod", "container", "node")}


def _demand_queries(match: Mapping[str, str], spelled: Mapping[str, str]) -> tuple[tuple[_KindReader, str, str], ...]:
    pod, node = f"{spelled['namespace']},{spelled['pod']}", spelled["node"]
    live = selectors(match, {"phase=~": "Running|Pending"})
    # Finished pods go on publishing requests; copies of one series count once.
    alive = f"max by ({pod}) (kube_pod_status_phase{{{live}}} == 1)"
    labelled = f"max by ({pod},{_KIND}) (kube_pod_labels{{{selectors(match, {f'{_KIND}!=': ''})}}})"
    owners = selectors(match, {"owner_kind=~": "|".join(sorted(OWNER_KINDS))})
    owned = f"max by ({pod},owner_kind) (kube_pod_owner{{{owners}}}) unless on ({pod}) {labelled}"
    asked = f"({_asked(match, spelled)}) * on ({pod}) group_left () {alive}"
    by = f"sum by ({node},resource"
    return (
        (lambda row: _EVERY_KIND, "history_total", f"{by}) ({asked})"),
        (
            lambda row: row.labels.get(_KIND, "").lower(),
            "history_by_label",
            f"{by},{_KIND}) ({asked} * on ({pod}) group_left ({_KIND}) {labelled})",
        ),
        (
            lambda row: OWNER_KINDS.get(row.labels.get("owner_kind", ""), "unknown"),
            "history_by_owner",
            f"{by},owner_kind) ({asked} * on ({pod}) group_left (owner_kind) ({owned}))",
        ),
    )


def _asked(match: Mapping[str, str], spelled: Mapping[str, str]) -> str:
    """Requests per pod, node and resource; devices that are shared by thousandths as a number of whole devices."""
    metric = "kube_pod_container_resource_requests"
    plain = selectors(match, {"resource=~": _PLAIN})
    counted = selectors(match, {"resource=": COUNTED[0]})
    milli = selectors(match, {"resource=": MILLI_PER_DEVICE})
    container = ",".join(spelled[name] for name in ("namespace", "pod", "container"))
    node = spelled["node"]
    shares = (
        f"max by ({container},{node},resource) ({metric}{{{counted}}}) * on ({container}) group_left () "
        f"max by ({container}) ({metric}{{{milli}}}) / {MILLI}"
    )
    return f"max by ({container},{node},resource) ({metric}{{{plain}}}) or {shares}"


def _add(points: Points, row: Row, pool: str, kind: str, node: NodeRecord | None) -> None:
    if kind != _EVERY_KIND and kind not in KINDS:
        kind = "unknown"
    part = _devices_per_unit(row.labels.get("resource", ""), node.labels if node else {})
    for at, amount in row.points:
        if amount == amount:  # not NaN
            points[pool, kind][round(at)] += amount * part


def _pool(node: str, record: NodeRecord | None, pool_labels: tuple[str, ...]) -> str:
    """The node's pool; pods that wait on no node are demand of all pools."""
    if not node:
        return ALL_POOLS
    labels = record.labels if record else {}
    return next((labels[key] for key in pool_labels if labels.get(key)), "default")


def _devices_per_unit(resource: str, labels: Mapping[str, str]) -> float:
    profile = mig_profile(resource)
    if profile:
        product = labels.get("nvidia_com_gpu_product")
        return profile_slices(profile, product)[0] / device_slices(product)[0]
    replicas = labels.get("nvidia_com_gpu_replicas", "1")
    shared = resource in (*WHOLE, *SHARED) and replicas.isdecimal() and int(replicas) > 1
    return 1 / int(replicas) if shared else 1.0


def _series(points: Points, seen: set[int], start: datetime, hours: int) -> Iterator[DemandSeries]:
    grid = [round(start.timestamp()) + i * HOUR_SECONDS for i in range(hours)]
    if not seen.intersection(grid):
        return
    _charge_the_rest(points)
    for (pool, kind), by_hour in sorted(points.items()):
        if any(by_hour.values()):
            values = tuple(by_hour.get(at, 0.0) if at in seen else None for at in grid)
            yield DemandSeries(pool=pool, kind=kind, start_at=start, step_seconds=HOUR_SECONDS, values=values)


def _charge_the_rest(points: Points) -> None:
    """What no label and no owner claimed becomes "unknown", so that the kinds of a pool add up to its total."""
    for pool in {pool for pool, _ in points}:
        total = points[pool, _EVERY_KIND]
        claimed = [by_hour for (p, kind), by_hour in points.items() if p == pool and kind != _EVERY_KIND]
        rest = {at: amount - sum(by_hour.get(at, 0.0) for by_hour in claimed) for at, amount in total.items()}
        for at, amount in rest.items():
            if amount > 1e-9:
                points[pool, "unknown"][at] += amount
