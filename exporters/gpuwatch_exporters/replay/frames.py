"""The replay's state: one frame per refresh, its pages printed once and served to everyone."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from gpuwatch.model.cluster import Gpu, Node
from gpuwatch.model.snapshot import ClusterSnapshot
from gpuwatch_exporters.replay.dcgm import Style, render_node, uuid_of
from gpuwatch_exporters.replay.holders import Holders, holders_of
from gpuwatch_exporters.replay.kube_pods import Stamp
from gpuwatch_exporters.replay.kube_state import KubeStatePage
from gpuwatch_exporters.replay.worlds import World, first_nodes


class Page:
    """Text as bytes, and packed for those who ask for it (packed on the first such request)."""

    def __init__(self, text: str) -> None:
        self.plain = text.encode()
        self._packed: bytes | None = None

    def packed(self) -> bytes:
        """gzip of the page."""
        if self._packed is None:
            self._packed = gzip.compress(self.plain, compresslevel=1, mtime=0)
        return self._packed


@dataclass(slots=True)
class Frame:
    """The cluster as one refresh found it."""

    at: datetime
    snapshot: ClusterSnapshot
    nodes: dict[str, Node]
    holders: Holders
    kube_state: Page
    pages: dict[str, Page] = field(default_factory=dict)


class ExporterDownError(Exception):
    """The node's exporter does not answer, on purpose."""


class EnergyMeters:
    """Joules per device since it was first read: a counter that never falls, whatever the world does."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[datetime, float]] = {}

    def read(self, key: str, watts: float | None, now: datetime) -> float | None:
        """Adds the time since the last reading at `watts`; None for a device whose power nobody reads."""
        if watts is None:
            return None
        then, joules = self._seen.get(key, (now, 0.0))
        joules += watts * max(0.0, (now - then).total_seconds())
        self._seen[key] = (now, joules)
        return joules


class Replay:
    """Refreshes the frame and prints node pages on demand. Readers on any thread; one refresher."""

    def __init__(self, world: World, style: Style, began: datetime, node_count: int | None = None) -> None:
        self.world, self.began = world, began
        self._style, self._node_count = style, node_count
        self._page = KubeStatePage()
        self._energy = EnergyMeters()
        self._lock = threading.Lock()
        self._frame: Frame | None = None
        self.refreshes, self.failures, self.refresh_seconds = 0, 0, 0.0

    @property
    def frame(self) -> Frame | None:
        """The newest frame; None before the first refresh."""
        return self._frame

    def refresh(self, now: datetime) -> None:
        """Reads the world and swaps the frame in one step. Pages of what did not change are kept."""
        started = time.perf_counter()
        moment = self.world.at(now)
        old = self._frame
        if old is not None and old.snapshot is moment.snapshot:
            fresh = Frame(now, old.snapshot, old.nodes, old.holders, old.kube_state)
        else:
            nodes = first_nodes(moment.snapshot, self._node_count)
            stamp = Stamp(deleted_seconds=round(self.began.timestamp()) - 30, shift_seconds=moment.shift_seconds)
            text = self._page.render(moment.snapshot, nodes, stamp)
            fresh = Frame(
                at=now,
                snapshot=moment.snapshot,
                nodes={node.name: node for node in nodes},
                holders=holders_of(moment.snapshot),
                kube_state=Page(text),
            )
            fresh.kube_state.packed()
        self._frame = fresh
        self.refreshes += 1
        self.refresh_seconds = time.perf_counter() - started

    def node_page(self, name: str) -> Page | None:
        """The page of one node; None for an unknown one. ExporterDownError where its exporter is down."""
        frame = self._frame
        node = frame.nodes.get(name) if frame is not None else None
        if frame is None or node is None or not node.gpus:
            return None
        if exporter_down(node):
            raise ExporterDownError(name)
        page = frame.pages.get(name)
        if page is None:
            with self._lock:  # the energy meters are not for two threads
                page = frame.pages.get(name) or self._print(frame, node)
                frame.pages[name] = page
        return page

    def _print(self, frame: Frame, node: Node) -> Page:
        pods = frame.holders.get(node.name, {})
        dressed = self.world.dress(node, pods, frame.at)
        return Page(render_node(dressed, pods, self._style, self._meter(dressed, frame.at)))

    def _meter(self, node: Node, now: datetime) -> Callable[[Gpu], float | None]:
        def read(gpu: Gpu) -> float | None:
            watts = gpu.telemetry.power_watts if gpu.telemetry else None
            return self._energy.read(uuid_of(node, gpu), watts, now)

        return read


def exporter_down(node: Node) -> bool:
    """Is every device of the node dark because its exporter is?"""
    return bool(node.gpus) and all(gpu.telemetry_reason == "exporter_down" for gpu in node.gpus)
