"""What the scraper says of its targets: `up`, and how many scrapes of each a window should hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpuwatch.dialects.dialect import DIALECTS
from gpuwatch.dialects.labels import target_of
from gpuwatch.model.observations import Observations, Sample, ScrapeTarget, TargetState

# Labels that scrape configurations put on a target to say on which machine it runs.
HOST_LABELS = ("node", "kubernetes_node", "nodename", "host")


@dataclass(frozen=True)
class ScrapeDialect:
    """`up` with statistic now (1 answered, 0 did not) and samples (scrapes due in the window, failed ones too)."""

    metrics: frozenset[str] = frozenset({"up"})

    def read(self, samples: Sequence[Sample]) -> Observations:
        states: dict[ScrapeTarget, TargetState] = {}
        for sample in samples:
            target = target_of(sample.labels)
            if target is None or not math.isfinite(sample.value):
                continue
            state = states.get(target) or TargetState(target=target, host=_host(sample))
            # Replicas of one scraper repeat a target: it answered when any of them got an answer.
            if sample.statistic == "now":
                state = replace(state, up=bool(state.up) or sample.value > 0)
            elif sample.statistic == "samples":
                state = replace(state, scrapes=max(state.scrapes or 0, round(sample.value)))
            states[target] = state
        return Observations(targets=tuple(states.values()))


def _host(sample: Sample) -> str | None:
    return next((sample.labels[name] for name in HOST_LABELS if sample.labels.get(name)), None)


DIALECTS.register("scrape")(ScrapeDialect())
