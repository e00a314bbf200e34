"""Which node a series is about. Exporters name their machine in many ways; the cluster's API has the last word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gpuwatch.model.observations import Holder, NodeRecord, PodRecord, Reading, ScrapeTarget, TargetState


class Hosts:
    """Resolves host names, scrape targets and pods to node names."""

    def __init__(self, nodes: Iterable[NodeRecord], pods: Iterable[PodRecord], targets: Iterable[TargetState]) -> None:
        records = list(nodes)
        self.known = {record.name for record in records}
        shorts = Counter(_short(name) for name in self.known)
        self._by_short = {_short(name): name for name in self.known if shorts[_short(name)] == 1}
        self._by_ip = {record.internal_ip: record.name for record in records if record.internal_ip}
        self._by_pod = {Holder(namespace=pod.namespace, pod=pod.name): pod.node for pod in pods if pod.node}
        self._exporter_pod = {pod.name: pod.node for pod in pods if pod.node}
        self._target_host = {state.target: state.host for state in targets if state.host}

    def of_reading(self, reading: Reading) -> str:
        """The node of a reading; a name that the cluster does not know when nothing better can be said."""
        host = reading.device.host
        return (
            self._known(host)
            or self.of_target(reading.target)
            # An exporter without a host setting prints its pod's name as its host.
            or self._exporter_pod.get(host or "")
            or (self._by_pod.get(reading.holder) if reading.holder else None)
            or host
            or (_without_port(reading.target.instance) if reading.target else None)
            or "unknown"
        )

    def of_target(self, target: ScrapeTarget | None) -> str | None:
        """The node on which a target runs; None when its labels do not say."""
        if target is None:
            return None
        return self._known(self._target_host.get(target)) or self._known(_without_port(target.instance))

    def _known(self, host: str | None) -> str | None:
        if not host:
            return None
        if host in self.known:
            return host
        return self._by_ip.get(host) or self._by_short.get(_short(host))


def _short(name: str) -> str:
    first, _, rest = name.partition(".")
    return name if rest and first.isdecimal() else first  # an address has no short form


def _without_port(instance: str) -> str:
    head, colon, port = instance.rpartition(":")
    return head.strip("[]") if colon and port.isdecimal() else instance
