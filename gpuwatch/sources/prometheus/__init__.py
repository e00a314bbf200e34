"""The door to Prometheus, Thanos, Mimir and VictoriaMetrics: queries in, one ClusterSnapshot out."""

from gpuwatch.sources.prometheus.source import PrometheusSource
from gpuwatch.sources.settings import PrometheusSettings

__all__ = ["PrometheusSettings", "PrometheusSource"]
