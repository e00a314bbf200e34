"""A server that answers known query texts with given samples, and can be told to fail in many ways."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from gpuwatch.model.observations import Sample
from gpuwatch.sources.prometheus.queries import NAME_LABEL, Query
from tests.servers import QuietHandler, serving

Reply = Callable[[QuietHandler], None]


def as_json(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    return as_bytes(status, json.dumps(body).encode(), "application/json", headers)


def as_bytes(status: int, body: bytes, kind: str = "text/html", headers: Mapping[str, str] | None = None) -> Reply:
    return lambda handler: handler.send(status, kind, body, headers)


def vector(rows: list[tuple[dict[str, str], float | str]], **more: Any) -> Reply:
    result = [
        {"metric": labels, "value": [0, number if isinstance(number, str) else repr(number)]} for labels, number in rows
    ]
    return as_json(200, {"status": "success", "data": {"resultType": "vector", "result": result}, **more})


def hang_up(handler: QuietHandler) -> None:
    """Promises more than it sends."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"status":"success","da')


def drip(handler: QuietHandler) -> None:
    """Sends a byte now and then, so that no single read times out."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(40):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def stall(handler: QuietHandler) -> None:
    time.sleep(1.0)
    as_json(200, {})(handler)


@dataclass
class Fake:
    """`answers`: query text -> reply, or several that are given in turn (the last one stays)."""

    url: str = ""
    answers: dict[str, list[Reply]] = field(default_factory=dict)
    otherwise: Reply = field(default_factory=lambda: vector([]))
    asked: list[dict[str, str]] = field(default_factory=list)
    most_at_once: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, form: dict[str, str]) -> Reply:
        with self._lock:
            self.asked.append(form)
            replies = self.answers.get(form.get("query", ""), [self.otherwise])
            return replies.pop(0) if len(replies) > 1 else replies[0]

    @contextmanager
    def busy(self) -> Iterator[None]:
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            yield
        finally:
            with self._lock:
                self._now -= 1

    def serve(self, queries: tuple[Query, ...], samples: list[Sample]) -> None:
        """Answers each query with those of the samples that its text names, by metric and statistic."""
        for query in queries:
            mine = [s for s in samples if s.statistic == query.statistic and _names(query, s.metric)]
            name = NAME_LABEL if query.statistic != "now" else "__name__"
            rows = [({**s.labels, **({} if query.metric else {name: s.metric})}, s.value) for s in mine]
            self.answers[query.text] = [vector(rows)]  # type: ignore[arg-type]


def _names(query: Query, metric: str) -> bool:
    words = query.text.replace("(", " ").replace("{", " ").replace('"', " ").replace("|", " ").split()
    regex = metric.startswith("kube_pod") and metric.endswith("container_resource_requests")
    return metric in words or (regex and query.name == "pod_requests")


@contextmanager
def fake_prometheus() -> Iterator[Fake]:
    fake = Fake()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802  # the name that http.server looks for
            length = int(self.headers.get("Content-Length", 0))
            form = {key: texts[0] for key, texts in parse_qs(self.rfile.read(length).decode()).items()}
            with fake.busy():
                fake.reply({**form, "path": self.path, **{f"header:{k}": v for k, v in self.headers.items()}})(self)

        def do_GET(self) -> None:  # noqa: N802
            as_bytes(405, b"POST only")(self)

    with serving(Handler) as address:
        fake.url = f"http://{address}"
        yield fake
