"""Joins everything that one read brought into a ClusterSnapshot. The order of the joins lives here and nowhere else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from gpuwatch.assemble.devices import Device, collect
from gpuwatch.assemble.gpus import Measured
from gpuwatch.assemble.holders import jobs_of_holders, spots_of
from gpuwatch.assemble.hosts import Hosts
from gpuwatch.assemble.jobs import Spot, jobs_of
from gpuwatch.assemble.nodes import node_of
from gpuwatch.assemble.offer import Offer, offer_of
from gpuwatch.assemble.pods import Want, asks_on, live_pods, want_of
from gpuwatch.assemble.resources import CORES_PERCENT, MEMORY_MIB, MEMORY_PERCENT, SHARED
from gpuwatch.assemble.settings import AssembleSettings
from gpuwatch.model.cluster import Node
from gpuwatch.model.observations import Holder, Observations, PodRecord, ScrapeTarget
from gpuwatch.model.snapshot import ClusterSnapshot, Finding, SourceHealth

_GAP_RATIO = 0.95
_FRACTIONS = (CORES_PERCENT, MEMORY_MIB, MEMORY_PERCENT)


def assemble(
    observed: Observations,
    *,
    cluster: str,
    taken_at: datetime,
    settings: AssembleSettings | None = None,
    sources: tuple[SourceHealth, ...] = (),
    findings: Iterable[Finding] = (),
    telemetry_missing: str | None = None,
    scrape_interval_seconds: float | None = None,
) -> ClusterSnapshot:
    """The snapshot of `observed` at `taken_at`. Never raises on data.

    `findings`: those of the reader, put first. `telemetry_missing`: why no device was read at all, when a query failed.
    `scrape_interval_seconds`: how often devices are scraped; None: at the rate that the scraper's own counts show.
    """
    settings = settings or AssembleSettings()
    found = [*findings, *_dropped(observed)]
    pods, pod_findings = live_pods(observed.pods)
    hosts = Hosts(observed.nodes, pods, observed.targets)
    devices, device_findings = collect(observed.readings, hosts)
    found += pod_findings + device_findings
    offers = _offers(observed, pods)
    wants = [(pod, _want(pod, offers)) for pod in pods]
    spots = spots_of(devices)
    working = {Holder(namespace=pod.namespace, pod=pod.name) for pod, want in wants if want.asks}
    believed, bare = _believed(spots, pods, working, offers, found)
    measured = Measured(
        window_seconds=observed.window_seconds,
        scrapes={state.target: state.scrapes for state in observed.targets if state.scrapes is not None},
        scrape_interval_seconds=scrape_interval_seconds,
        silent=_silent(observed, devices, hosts),
        silent_default=telemetry_missing or "no_series",
    )
    nodes = _nodes(observed, devices, offers, believed, wants, measured, settings, found)
    pools = {node.name: node.pool for node in nodes}
    jobs, job_findings = jobs_of([pair for pair in wants if pair[1].asks], believed, pools, settings)
    found += job_findings + _gaps(nodes)
    known = {job.id for job in jobs}
    extra = [job for job in jobs_of_holders(bare, pools) if job.id not in known]
    if extra and not observed.pods:
        detail = "no pod requests were read; jobs are those that devices name, and their shapes are what they hold"
        found.append(Finding(code="requests_unknown", severity="warning", subject=cluster, detail=detail))
    return ClusterSnapshot(
        cluster=cluster,
        taken_at=taken_at,
        nodes=nodes,
        jobs=tuple(sorted((*jobs, *extra), key=lambda job: job.id)),
        sources=sources,
        findings=_counted(found),
        metrics=observed.metrics,
        spellings=observed.spellings,
    )


def _offers(observed: Observations, pods: list[PodRecord]) -> dict[str, Offer]:
    fractional = {
        pod.node for pod in pods for c in pod.containers if pod.node and any(name in c.amounts for name in _FRACTIONS)
    }
    return {record.name: offer_of(record, fractions=record.name in fractional) for record in observed.nodes}


def _want(pod: PodRecord, offers: Mapping[str, Offer]) -> Want:
    offer = offers.get(pod.node or "")
    if offer is not None:
        return want_of(pod, asks_on(offer.replicas, offer.whole_is_profile, offer.memory_bytes))
    # Not bound: a plain GPU is a whole one; a shared one is what most nodes that share offer.
    shared = any(name in c.amounts for c in pod.containers for name in SHARED)
    usual = Counter(o.replicas for o in offers.values() if o.replicas > 1).most_common(1)
    memory = Counter(o.memory_bytes for o in offers.values() if o.memory_bytes).most_common(1)
    return want_of(pod, asks_on(usual[0][0] if shared and usual else 1, None, memory[0][0] if memory else None))


def _believed(
    spots: Mapping[Holder, list[Spot]],
    pods: list[PodRecord],
    working: set[Holder],
    offers: Mapping[str, Offer],
    found: list[Finding],
) -> tuple[dict[Holder, list[Spot]], dict[Holder, list[Spot]]]:
    """(spots of pods whose requests are known, spots of holders known by nothing else).

    A pod that no longer lives, or that asked for no GPU where GPUs are asked for by resource, holds nothing.
    """
    live = {Holder(namespace=pod.namespace, pod=pod.name) for pod in pods}
    believed: dict[Holder, list[Spot]] = {}
    bare: dict[Holder, list[Spot]] = {}
    for holder, held in spots.items():
        if holder in working:
            believed[holder] = held
        elif not offers and not live:
            bare[holder] = held
        elif holder in live:
            # Devices given out by another way than a counted resource: no request says so, the device does.
            unasked = [spot for spot in held if not offers.get(spot.node, Offer()).offered]
            if unasked:
                bare[holder] = unasked
        else:
            detail = "a device names it as its holder, but no such pod lives; the device does not count as held"
            subject = f"{holder.namespace}/{holder.pod}"
            found.append(Finding(code="stale_pod_label", severity="info", subject=subject, detail=detail))
    return believed, bare


def _silent(observed: Observations, devices: Mapping[str, list[Device]], hosts: Hosts) -> dict[str, str]:
    """Nodes whose exporter is known not to answer."""
    down = {state.target for state in observed.targets if state.up is False}
    exporters: set[str] = {target.job for mine in devices.values() for d in mine for target in d.targets}
    silent: dict[str, str] = {}
    for node, mine in devices.items():
        targets: set[ScrapeTarget] = {target for device in mine for target in device.targets}
        if targets & down:
            silent[node] = "exporter_down"
    for target in down:
        where = hosts.of_target(target)
        if where and target.job in exporters:
            silent.setdefault(where, "exporter_down")
    return silent


def _nodes(
    observed: Observations,
    devices: Mapping[str, list[Device]],
    offers: Mapping[str, Offer],
    believed: Mapping[Holder, list[Spot]],
    wants: list[tuple[PodRecord, Want]],
    measured: Measured,
    settings: AssembleSettings,
    found: list[Finding],
) -> tuple[Node, ...]:
    records = {record.name: record for record in observed.nodes}
    held: dict[str, set[int]] = defaultdict(set)
    for spots in believed.values():
        for spot in spots:
            held[spot.node].add(spot.index)
    other: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for pod, want in wants:
        if pod.node and not want.asks:
            cpu, memory = other[pod.node]
            other[pod.node] = (cpu + want.cpu_millicores, memory + want.memory_bytes)
    nodes = []
    for name in sorted({*records, *devices}):
        node, node_findings = node_of(
            name,
            records.get(name),
            devices.get(name, []),
            offers.get(name, Offer()),
            held[name],
            other[name],
            measured,
            settings,
            scheduler_known=bool(records),
        )
        nodes.append(node)
        found += node_findings
    for name, reason in sorted(measured.silent.items()):
        if any(gpu.telemetry is None for node in nodes if node.name == name for gpu in node.gpus):
            detail = f"its device telemetry is unknown ({reason}); unknown is not idle"
            found.append(Finding(code=reason, severity="warning", subject=name, detail=detail))
    return tuple(nodes)


def _dropped(observed: Observations) -> list[Finding]:
    return [
        Finding(
            code=f"samples_{drop.reason}",
            severity="info",
            subject=drop.metric,
            detail="samples that no reader can use; left out",
            count=drop.count,
        )
        for drop in observed.dropped
    ]


def _gaps(nodes: Iterable[Node]) -> list[Finding]:
    out = []
    for node in nodes:
        windows = [gpu.activity for gpu in node.gpus if gpu.activity]
        windows += [part.activity for gpu in node.gpus for part in gpu.mig_instances if part.activity]
        short = [a for a in windows if a.samples < _GAP_RATIO * a.samples_expected]
        if short:
            worst = min(a.samples / a.samples_expected for a in short)
            detail = (
                f"{len(short)} windows have gaps, the worst holds {worst:.0%} of its samples; no idle verdict there"
            )
            out.append(Finding(code="scrape_gap", severity="info", subject=node.name, detail=detail))
    return out


def _counted(found: list[Finding]) -> tuple[Finding, ...]:
    """Equal findings once, with their number."""
    counts: dict[tuple[str, str, str, str], int] = {}
    kept: dict[tuple[str, str, str, str], Finding] = {}
    for finding in found:
        key = (finding.code, finding.severity, finding.subject, finding.detail)
        kept.setdefault(key, finding)
        counts[key] = counts.get(key, 0) + finding.count
    return tuple(
        Finding(code=f.code, severity=f.severity, subject=f.subject, detail=f.detail, count=counts[key])
        for key, f in kept.items()
    )
