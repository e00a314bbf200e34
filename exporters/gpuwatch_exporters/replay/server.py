"""The HTTP server: everything on one port, a path per page."""

from __future__ import annotations

import html
import logging
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from gpuwatch import __version__
from gpuwatch.errors import GpuwatchError
from gpuwatch_exporters.exposition import CONTENT_TYPE
from gpuwatch_exporters.replay.frames import ExporterDownError, Page, Replay
from gpuwatch_exporters.replay.self_metrics import SelfMetrics
from gpuwatch_exporters.replay.targets import KUBE_STATE_PATH, SELF_PATH, node_path, targets_json

log = logging.getLogger(__name__)
TEXT, JSON, HTML = "text/plain; charset=utf-8", "application/json", "text/html; charset=utf-8"
_MAX_LISTED = 200

Answer = tuple[HTTPStatus, str, Page]  # status, content type, body


class PortTakenError(GpuwatchError):
    """The address cannot be listened on."""

    code = "port_taken"


class ReplayServer(ThreadingHTTPServer):
    """Serves a Replay. `address` is host:port as scrapers should reach it."""

    daemon_threads = True  # a scraper that hangs must not keep the process from ending
    request_queue_size = 1024  # a scrape of a thousand targets comes as a thousand connections to one port

    def __init__(self, replay: Replay, host: str, port: int, advertise: str | None = None) -> None:
        try:
            super().__init__((host, port), _Handler)
        except OSError as err:
            raise PortTakenError(
                f"cannot listen on {host}:{port}: {err.strerror or err}",
                todo="choose another --listen, for example 127.0.0.1:0 for any free port",
            ) from err
        self.replay = replay
        self.metrics = SelfMetrics(replay)
        self.address = advertise or f"{'127.0.0.1' if host in ('0.0.0.0', '') else host}:{self.server_address[1]}"

    def gpu_nodes(self) -> list[str]:
        """Names of the nodes that have a page."""
        frame = self.replay.frame
        return [name for name, node in frame.nodes.items() if node.gpus] if frame else []

    def answer(self, path: str) -> tuple[str, Answer]:
        """(kind of page, answer) for a path without its query."""
        fixed = _FIXED.get(path)
        if fixed is not None:
            return fixed[0], fixed[1](self)
        parts = path.split("/")
        if len(parts) == 4 and parts[1] == "nodes" and parts[3] == "metrics":
            return "node", self._node(unquote(parts[2]))
        return "other", _plain(HTTPStatus.NOT_FOUND, "no such page; / lists them")

    def _node(self, name: str) -> Answer:
        if self.replay.frame is None:
            return _plain(HTTPStatus.SERVICE_UNAVAILABLE, "the first refresh is not over")
        try:
            page = self.replay.node_page(name)
        except ExporterDownError:
            return _plain(HTTPStatus.SERVICE_UNAVAILABLE, "this node's exporter is down, on purpose")
        if page is None:
            return _plain(HTTPStatus.NOT_FOUND, "no node of that name has GPUs here")
        return HTTPStatus.OK, CONTENT_TYPE, page


class _Handler(BaseHTTPRequestHandler):
    """GET and HEAD. One connection per request: a kept-alive one would hold a thread for each of a thousand targets."""

    server: ReplayServer
    server_version = f"gpuwatch-replay/{__version__}"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, body: bool) -> None:
        kind, (status, content_type, page) = self.server.answer(urlsplit(self.path).path)
        packed = "gzip" in self.headers.get("Accept-Encoding", "")
        data = page.packed() if packed else page.plain
        try:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            if packed:
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            if body:
                self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True  # the scraper gave up
        self.server.metrics.requests.labels(kind, str(int(status))).inc()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it so
        log.debug("%s %s", self.address_string(), format % args)


def _plain(status: HTTPStatus, text: str) -> Answer:
    return status, TEXT, Page(text + "\n")


def _kube_state(server: ReplayServer) -> Answer:
    frame = server.replay.frame
    if frame is None:
        return _plain(HTTPStatus.SERVICE_UNAVAILABLE, "the first refresh is not over")
    return HTTPStatus.OK, CONTENT_TYPE, frame.kube_state


def _ready(server: ReplayServer) -> Answer:
    if server.replay.frame is None:
        return _plain(HTTPStatus.SERVICE_UNAVAILABLE, "the first refresh is not over")
    return _plain(HTTPStatus.OK, "ready")


def _landing(server: ReplayServer) -> Answer:
    nodes = server.gpu_nodes()
    links = [KUBE_STATE_PATH, SELF_PATH, "/sd", "/-/healthy", "/-/ready", *map(node_path, nodes[:_MAX_LISTED])]
    items = "".join(f'<li><a href="{html.escape(link, quote=True)}">{html.escape(link)}</a></li>' for link in links)
    more = f"<p>and {len(nodes) - _MAX_LISTED} more nodes, see /sd</p>" if len(nodes) > _MAX_LISTED else ""
    told = html.escape(server.replay.world.told)
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>gpuwatch replay</title>'
        f"<h1>gpuwatch replay</h1><p>{told}. Nothing here is measured.</p><ul>{items}</ul>{more}</html>"
    )
    return HTTPStatus.OK, HTML, Page(text)


def _targets(server: ReplayServer) -> Answer:
    return HTTPStatus.OK, JSON, Page(targets_json(server.address, server.gpu_nodes()))


_FIXED: dict[str, tuple[str, Callable[[ReplayServer], Answer]]] = {
    "/": ("landing", _landing),
    KUBE_STATE_PATH: ("kube_state", _kube_state),
    SELF_PATH: ("self", lambda server: (HTTPStatus.OK, CONTENT_TYPE, Page(server.metrics.render()))),
    "/sd": ("sd", _targets),
    "/-/healthy": ("health", lambda server: _plain(HTTPStatus.OK, "healthy")),
    "/-/ready": ("health", _ready),
}
