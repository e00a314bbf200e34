"""How to reach a Prometheus-compatible server, and what to ask of it."""

from __future__ import annotations

from dataclasses import field
from urllib.parse import urlsplit

from gpuwatch.assemble.settings import AssembleSettings
from gpuwatch.errors import SettingsError
from gpuwatch.model.values import value


@value
class PrometheusSettings:
    """`url` is the address under which /api/v1 lies. Secrets are read from files at every request, never kept here."""

    url: str = "http://127.0.0.1:9090"
    name: str | None = None  # what health and errors call it; default: prometheus:HOST
    cluster: str | None = None  # the snapshot's cluster name; default: the value of the one matcher, else "default"
    matchers: dict[str, str] = field(default_factory=dict)  # label -> value, added to every selector
    timeout_seconds: float = 20.0  # for one query, its retries apart
    max_concurrency: int = 4
    retries: int = 2  # after 429 and 503 only
    backoff_seconds: float = 0.5  # doubled by every retry; a Retry-After header wins, up to the timeout
    max_response_bytes: int = 256 * 2**20
    bearer_token_file: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    tenant: str | None = None  # sent as X-Scope-OrgID (Mimir, Cortex)
    ca_file: str | None = None
    verify_tls: bool = True
    accept_partial: bool = False  # take answers that carry warnings (a store that did not reply) as if they were whole
    window_seconds: int = 1800  # behind the idle verdict; longer windows cost the server more
    scrape_interval_seconds: float | None = None  # of the device exporter; tells gaps of the scraper itself
    history_chunk_hours: int = 168  # one range query covers this much
    assemble: AssembleSettings = field(default_factory=AssembleSettings)

    def checked(self) -> PrometheusSettings:
        """Itself, or SettingsError naming the setting that cannot be honored."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(
                f"prometheus url is not an http(s) address: {safe_url(self.url)!r}",
                todo="write for example http://prometheus.example:9090",
            )
        for key in (
            "timeout_seconds",
            "max_concurrency",
            "max_response_bytes",
            "window_seconds",
            "history_chunk_hours",
        ):
            if getattr(self, key) <= 0:
                raise SettingsError(f"prometheus {key} must be above 0, it is {getattr(self, key)}")
        for key in self.matchers:
            if not key.isidentifier() or not key.isascii():
                raise SettingsError(f"prometheus matcher {key!r} is not a label name")
        return self

    @property
    def source_name(self) -> str:
        return self.name or f"prometheus:{urlsplit(self.url).hostname or 'unknown'}"

    @property
    def cluster_name(self) -> str:
        values = list(self.matchers.values())
        return self.cluster or (values[0] if len(values) == 1 else "default")


def safe_url(url: str) -> str:
    """The address without user, password, query and fragment: what may be shown."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(an address that cannot be read)"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{port}{parts.path}".rstrip("/")
