"""Reads the cluster from a Prometheus-compatible server. A question that fails makes its part unknown, never empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from time import monotonic

from gpuwatch.assemble.snapshot import assemble
from gpuwatch.dialects.dialect import observe
from gpuwatch.errors import SourceError
from gpuwatch.model.history import History
from gpuwatch.model.observations import Observations, Sample
from gpuwatch.model.snapshot import ClusterSnapshot, Finding, SourceHealth
from gpuwatch.sources.prometheus.client import PrometheusClient, Row
from gpuwatch.sources.prometheus.describe import PrometheusDescription, describe
from gpuwatch.sources.prometheus.history import demand_history
from gpuwatch.sources.prometheus.parallel import in_parallel
from gpuwatch.sources.prometheus.queries import NAME_LABEL, Query, snapshot_queries
from gpuwatch.sources.settings import PrometheusSettings, safe_url

_WINDOW_QUERIES = ("peaks", "counts")
Answer = list[Row] | SourceError


class PrometheusSource:
    """One server, one cluster. Holds no state between reads."""

    def __init__(self, settings: PrometheusSettings) -> None:
        self.settings = settings.checked()
        self.name = settings.source_name

    def read(self, now: datetime) -> ClusterSnapshot:
        """The cluster at `now`. SourceError when a required question has no answer, or when nothing is known at all."""
        with self._client() as client:
            answers = self._answers(client, snapshot_queries(self.settings), now)
        failed = [(query, answer) for query, answer in answers if isinstance(answer, SourceError)]
        for query, error in failed:
            if query.required:
                raise error
        broken = {query.name: error for query, error in failed}
        windows = not broken.keys() & set(_WINDOW_QUERIES)
        observed = observe(_samples(answers), self.settings.window_seconds if windows else None)
        self._refuse_nothing(observed, broken)
        return assemble(
            observed,
            cluster=self.settings.cluster_name,
            taken_at=now,
            settings=self.settings.assemble,
            sources=tuple(self._health(failed, now)),
            findings=[*_findings(failed, self.name), *_absent(observed, broken, self.name)],
            telemetry_missing="query_failed" if "devices" in broken else None,
            scrape_interval_seconds=self.settings.scrape_interval_seconds,
        )

    def demand_history(self, now: datetime, hours: int) -> History:
        """Requested GPUs per pool and kind, hour by hour, over the `hours` before `now`. Raises SourceError."""
        with self._client() as client:
            return demand_history(client, self.settings, now, hours)

    def describe(self, now: datetime) -> PrometheusDescription:
        """What this server knows and lacks, for people. Raises SourceError when it does not answer at all."""
        began = monotonic()
        with self._client() as client:
            answers = self._answers(client, snapshot_queries(self.settings), now)
            observed = observe(_samples(answers), self.settings.window_seconds)
            failures = {query.name: answer for query, answer in answers if isinstance(answer, SourceError)}
            if len(failures) == len(answers):
                raise next(iter(failures.values()))
            return describe(client, self.settings, now, observed, failures, lambda: monotonic() - began)

    @contextmanager
    def _client(self) -> Iterator[PrometheusClient]:
        with PrometheusClient(self.settings) as client:
            yield client

    def _answers(self, client: PrometheusClient, queries: Iterable[Query], now: datetime) -> list[tuple[Query, Answer]]:
        def ask(query: Query) -> tuple[Query, Answer]:
            try:
                return query, client.instant(query.name, query.text, now)
            except SourceError as err:
                return query, err

        return in_parallel(ask, queries, self.settings.max_concurrency, name="prometheus")

    def _refuse_nothing(self, observed: Observations, broken: dict[str, SourceError]) -> None:
        if observed.nodes or observed.readings:
            return
        if "devices" in broken:
            raise broken["devices"]
        raise SourceError(
            f"{safe_url(self.settings.url)} knows no node and no GPU",
            tried=f"names of kube-state-metrics and dcgm-exporter, matchers {self.settings.matchers or 'none'}",
            todo="check the matchers and that both exporters are scraped (gpuwatch doctor lists what is missing)",
            code="bad_answer",
        )

    def _health(self, failed: list[tuple[Query, SourceError]], now: datetime) -> Iterator[SourceHealth]:
        yield SourceHealth(name=self.name, kind="prometheus", ok=True, observed_at=now)
        for query, error in failed:
            yield SourceHealth(
                name=f"{self.name}/{query.name}", kind="prometheus", ok=False, cause=error.code, detail=error.what
            )


def _samples(answers: Iterable[tuple[Query, Answer]]) -> Iterator[Sample]:
    for query, answer in answers:
        if isinstance(answer, SourceError):
            continue
        for row in answer:
            labels = {key: text for key, text in row.labels.items() if key != NAME_LABEL}
            metric = query.metric or row.metric or row.labels.get(NAME_LABEL, "")
            yield Sample(metric=metric, labels=labels, value=row.points[-1][1], statistic=query.statistic)


def _findings(failed: list[tuple[Query, SourceError]], name: str) -> Iterator[Finding]:
    for query, error in failed:
        detail = f"query {query.name} failed ({error.code}): unknown is {query.unknown}"
        yield Finding(code="query_failed", severity="warning", subject=name, detail=detail)


def _absent(observed: Observations, broken: dict[str, SourceError], name: str) -> Iterator[Finding]:
    """Exporters that the server answered about, with nothing: not a failure, and still a part that is unknown."""
    if "devices" not in broken and not any(reading.statistic == "now" for reading in observed.readings):
        detail = "no device exporter is scraped, or none answers: telemetry is unknown, and unknown is not idle"
        yield Finding(code="no_device_series", severity="critical", subject=name, detail=detail)
    if not observed.nodes:
        detail = "no node objects are scraped: what may be scheduled, and how many GPUs should stand there, is unknown"
        yield Finding(code="no_node_series", severity="critical", subject=name, detail=detail)
    if not observed.pods:
        detail = "no pod requests are scraped: what is allocated is known only where devices name their holder"
        yield Finding(code="no_pod_series", severity="critical", subject=name, detail=detail)
