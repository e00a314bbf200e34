"""The slow, plain what-if: every request, every choice and every index worked out anew, one node after the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np

from gpuwatch.fit.booking import BookedNode, Booking, node_block_cause
from gpuwatch.fit.columns import Columns, columns_of
from gpuwatch.fit.fleet_fit import first_devices, fits, members_that_fit
from gpuwatch.fragmentation.report import report_on, table_of
from gpuwatch.model.catalogue import card
from gpuwatch.model.mix import DemandMix
from gpuwatch.model.placement import PlacementAdvice, PlacementChoice, PlacementRequest
from gpuwatch.model.units import MIB
from gpuwatch.placement.policy import ANY_DEVICE, PolicyContext, make_policy

GB = 10**9
BYTES = {"fp16": 2, "bf16": 2, "fp8": 1, "fp4": 0.5625}
SINCE = {
    "bf16": ("ampere", "ada-lovelace", "hopper", "blackwell"),
    "fp8": ("ada-lovelace", "hopper", "blackwell"),
    "fp4": ("blackwell",),
}
B200_CLASS = ("B200", "GB200", "B300", "GB300")
H100S = ("H100-80", "H100-NVL-94")


class PlainWhatIf:
    def __init__(self, booking: Booking, mix: DemandMix) -> None:
        self.booking = booking
        self.mix = mix
        self.nodes = list(booking.nodes.values())

    def answer(self, request: PlacementRequest) -> PlacementAdvice:
        """The advice but for nearest_fix and gpu_memory."""
        if request.choose_gpus:
            tried = [replace(request, choose_gpus=False, shape=replace(request.shape, gpus=n)) for n in (1, 2, 4, 8)]
            fitting = [each for each in tried if self.rows(each)]
            memory = [each for each in tried if self._some_card(each)]
            request = (fitting or memory or tried[-1:])[0]
        choices = []
        for way in self._ways(request):
            choices += self._choices(request, *way)
        choices.sort(key=lambda pair: pair[0])
        ranked = [replace(choice, rank=at + 1) for at, (_, choice) in enumerate(choices[: request.top])]
        return PlacementAdvice(
            evaluation_id="plain",
            policy=request.policy,
            feasible=bool(ranked),
            choices=tuple(ranked),
            blockers=self._blockers(request),
        )

    def rows(self, request: PlacementRequest) -> set[int]:
        """Nodes that could take part in a placement; empty when the request does not fit."""
        return {row for _, rows in self._ways(request) for row in rows}

    # What may take it

    def memory_of(self, gpu) -> int:
        if gpu.memory_total_bytes is not None:
            return gpu.memory_total_bytes
        found = card(gpu.model)
        return found.memory_total_mib * MIB if found else 0

    def need_of(self, request: PlacementRequest) -> float | None:
        each = request.gpu_memory_bytes
        if request.model is not None:
            n, weight = request.model.parameters, BYTES[request.model.precision]
            parts = (weight, 2, 12, 2) if request.model.purpose == "training" else (weight, 0.4)
            total = sum(round(n * part) for part in parts)
            each = -(-total // (request.members * request.shape.gpus))
        return None if each is None else each * 1000 / request.shape.milligpu_per_gpu

    def precise(self, gpu, request: PlacementRequest) -> bool:
        if request.model is None or request.model.precision == "fp16":
            return True
        found = card(gpu.model)
        return found is not None and found.generation in SINCE[request.model.precision]

    def may(self, gpu, request: PlacementRequest) -> bool:
        if request.shape.gpus and request.shape.gpu_models and gpu.model not in request.shape.gpu_models:
            return False
        need = self.need_of(request)
        return need is None or (self.precise(gpu, request) and self.memory_of(gpu) >= need)

    def _some_card(self, request: PlacementRequest) -> bool:
        usable = (g for b in self.nodes for g, ok in zip(b.node.gpus, b.usable, strict=True) if ok)
        return any(self.may(gpu, request) for gpu in usable)

    def _wants_domain(self, request: PlacementRequest) -> bool:
        return request.same_nvlink_domain and request.members * request.shape.gpus > 1

    def _generation(self, gpu) -> str | None:
        """None: no NVLink, or an unknown device beside known ones."""
        found = card(gpu.model)
        if found is None:
            return gpu.model or "nameless"
        return found.generation if found.nvlink_version is not None else None

    def _masks(self, request: PlacementRequest):
        """Per way of placing: which devices may be used."""
        mine = [[self.may(gpu, request) for gpu in b.node.gpus] for b in self.nodes]
        if not self._wants_domain(request):
            yield mine
            return
        for wanted in sorted({self._generation(g) or "" for b in self.nodes for g in b.node.gpus} - {""}):
            masks = []
            for b, allowed in zip(self.nodes, mine, strict=True):
                alone = all(gpu.model is None for gpu in b.node.gpus)
                same = [self._generation(gpu) == wanted and (wanted != "nameless" or alone) for gpu in b.node.gpus]
                masks.append([a and s for a, s in zip(allowed, same, strict=True)])
            yield masks

    def _ways(self, request: PlacementRequest):
        whole = columns_of(self.booking)
        for masks in self._masks(request):
            mask = np.zeros(whole.left.shape, dtype=bool)
            for row, each in enumerate(masks):
                mask[row, : len(each)] = each
            columns = whole.only(mask)
            room = members_that_fit(replace(columns, left=np.where(mask, columns.left, 0)), request.shape)
            if not self._wants_domain(request):
                rows = {row for row in range(len(room)) if room[row] > 0} if room.sum() >= request.members else set()
            else:
                total = defaultdict(int)
                for row in range(len(room)):
                    total[self._domain(row)] += int(room[row])
                rows = {r for r in range(len(room)) if room[r] > 0 and total[self._domain(r)] >= request.members}
            if rows:
                yield columns, rows

    def _domain(self, row: int):
        node = self.nodes[row].node
        return ("domain", node.nvlink_domain) if node.nvlink_domain else ("node", node.name)

    # Where it goes

    def _place(self, columns: Columns, row: int, request: PlacementRequest) -> tuple[int, int]:
        """The best place among the choices that an allowed card of the node has."""
        need = self.need_of(request)
        if need is None:
            return (0, 0)
        return min(
            self._place_of(gpu, request)
            for gpu, ok in zip(self.nodes[row].node.gpus, columns.accepted(())[row], strict=False)
            if ok and self.may(gpu, request)
        )

    def _place_of(self, gpu, request: PlacementRequest) -> tuple[int, int]:
        need = self.need_of(request)
        serving = request.model is not None and request.model.purpose == "inference"
        light = serving and request.members * request.shape.gpus == 1 and need <= 80 * GB
        if need > 120 * GB:
            tier = B200_CLASS
        elif need > 80 * GB:
            tier = ("H200-141",)
        elif need > 40 * GB:
            tier = H100S
        else:
            tier = ("A100-40", "A100-80", *H100S)
        if gpu.model == "H20":
            return (0, 0) if light else (3, 0)
        if gpu.model in tier:
            return (1, 0)
        alike = [
            self.memory_of(other)
            for b in self.nodes
            for other, ok in zip(b.node.gpus, b.usable, strict=True)
            if other.model == gpu.model and ok
        ]
        return (2, max(alike))

    def _scores(self, columns: Columns, request: PlacementRequest, rows: list[int]) -> dict[int, tuple[int, int]]:
        """row -> (score, device) where one member fits now."""
        fitting = [row for row in rows if fits(columns, request.shape)[row]]
        if not fitting:
            return {}
        policy = make_policy(request.policy, PolicyContext(mix=table_of(columns, self.mix)))
        ranking = policy.rank(columns, request.shape, np.array(fitting), 0)
        return {
            row: (int(score), int(device))
            for row, score, device in zip(fitting, ranking.score, ranking.device, strict=True)
        }

    def _choices(self, request: PlacementRequest, columns: Columns, rows: set[int]):
        scores = self._scores(columns, request, sorted(rows))

        def key(row: int):
            score, device = scores[row]
            device_room = 0 if device == ANY_DEVICE else int(columns.left[row, device])
            return self._place(columns, row, request), -score, int(columns.left[row].sum()), device_room, row

        found, seen = [], set()
        for start in sorted(scores, key=key)[: request.top * 10]:
            allowed = [
                row
                for row in sorted(rows)
                if not self._wants_domain(request) or self._domain(row) == self._domain(start)
            ]
            spots, after = self._gang(request, columns, start, allowed)
            nodes = tuple(sorted(row for row, _ in spots))
            if spots and nodes not in seen:
                seen.add(nodes)
                found.append((key(start), self._choice(spots, after)))
            if len(found) == request.top:
                break
        return found

    def _gang(self, request: PlacementRequest, columns: Columns, start: int, allowed: list[int]):
        now, spots, at = columns.copy(), [], start
        while True:
            _, device = self._scores(now, request, [at])[at]
            devices = first_devices(now, at, request.shape) if device == ANY_DEVICE else (device,)
            now.take(at, request.shape, devices)
            spots.append((at, devices))
            if len(spots) == request.members:
                return spots, now
            scores = self._scores(now, request, allowed)
            if not scores:
                return [], now
            at = min(scores, key=lambda row: (self._place(columns, row, request), -scores[row][0], row))

    def _choice(self, spots, after: Columns) -> PlacementChoice:
        whole = columns_of(self.booking)
        before, later = (
            report_on(whole, self.mix),
            report_on(replace(after, allowed=None, _accepted={}), self.mix),
        )
        cards = {self.nodes[row].node.gpus[device].model for row, devices in spots for device in devices}
        generations = {found.generation if (found := card(model)) else model or "unknown" for model in cards}
        return PlacementChoice(
            rank=0,
            assignments=tuple(self._assignment(row, devices) for row, devices in spots),
            fragmentation_before=before.overall.fragmentation_index,
            fragmentation_after=later.overall.fragmentation_index,
            stranded_delta_milligpu=later.overall.stranded_milligpu - before.overall.stranded_milligpu,
            blocked_shapes=tuple(
                b.shape.label for b, a in zip(before.shapes, later.shapes, strict=True) if b.fits_now and not a.fits_now
            ),
            mixed_generations=tuple(sorted(generations)) if len(generations) > 1 else (),
        )

    def _assignment(self, row: int, devices: tuple[int, ...]):
        from gpuwatch.model.placement import Assignment

        node = self.nodes[row].node
        models = {node.gpus[device].model for device in devices}
        return Assignment(
            node=node.name,
            pool=node.pool,
            gpu_model=models.pop() if len(models) == 1 else None,
            gpus=tuple(node.gpus[device].index for device in devices),
        )

    # Why not

    def _blockers(self, request: PlacementRequest) -> dict[str, int]:
        counts: Counter[str] = Counter()
        whole, rows = columns_of(self.booking), self.rows(request)
        for row, booked in enumerate(self.nodes):
            cause = self._cause(request, whole, row, booked)
            if cause is None and self._wants_domain(request) and row not in rows:
                cause = self._nvlink_cause(request, row)
            if cause is not None:
                counts[cause] += 1
        return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))

    def _cause(self, request: PlacementRequest, whole: Columns, row: int, booked: BookedNode) -> str | None:
        shape, gpus = request.shape, booked.node.gpus
        if shape.gpus and not gpus:
            return "no_gpus"
        if node_block_cause(booked.node) is not None:
            return f"blocked:{node_block_cause(booked.node)}"
        if shape.mig_profile and shape.gpus:
            if not any(i.profile == shape.mig_profile for gpu in gpus for i in gpu.mig_instances):
                return "mig_profile"
            if whole.free_instances(shape.mig_profile, shape.gpu_models)[row].sum() < shape.gpus:
                return "mig_busy"
        elif shape.gpus:
            if all(gpu.mig_enabled for gpu in gpus):
                return "mig_mode"
            mine = [
                (gpu, left)
                for gpu, ok, left in zip(gpus, booked.usable, booked.free_milligpu, strict=True)
                if ok and (not shape.gpu_models or gpu.model in shape.gpu_models)
            ]
            if shape.gpu_models and not mine:
                return "model"
            need = self.need_of(request)
            if need is not None:
                wanted = min(len(mine), shape.gpus)
                precise = [gpu for gpu, _ in mine if self.precise(gpu, request)]
                enough = [gpu for gpu in precise if self.memory_of(gpu) >= need]
                unknown = [gpu for gpu in precise if self.memory_of(gpu) == 0]
                if len(precise) < wanted:
                    return "precision_unsupported"
                if len(enough) < wanted:
                    return "gpu_memory_unknown" if len(enough) + len(unknown) >= wanted else "gpu_memory_lacking"
            if sum(left >= shape.milligpu_per_gpu for gpu, left in mine if self.may(gpu, request)) < shape.gpus:
                return "gpu_lacking"
        if booked.cpu_free_millicores is not None and booked.cpu_free_millicores < shape.cpu_millicores:
            return "cpu_lacking"
        if booked.memory_free_bytes is not None and booked.memory_free_bytes < shape.memory_bytes:
            return "memory_lacking"
        return None

    def _nvlink_cause(self, request: PlacementRequest, row: int) -> str:
        def joined(booked: BookedNode, gpu) -> bool:
            if gpu.model is None:
                return not request.shape.gpu_models and all(other.model is None for other in booked.node.gpus)
            named = not request.shape.gpu_models or gpu.model in request.shape.gpu_models
            return named and self._generation(gpu) is not None and self._known_fine(gpu, request)

        if not any(joined(self.nodes[row], gpu) for gpu in self.nodes[row].node.gpus):
            return "no_nvlink"
        whole = columns_of(self.booking)
        mask = np.zeros(whole.left.shape, dtype=bool)
        for at, booked in enumerate(self.nodes):
            mask[at, : len(booked.node.gpus)] = [
                gpu.model is not None and joined(booked, gpu) and self.may(gpu, request) for gpu in booked.node.gpus
            ]
        columns = whole.only(mask)
        room = members_that_fit(replace(columns, left=np.where(mask, columns.left, 0)), request.shape)
        together = sum(int(room[at]) for at in range(len(room)) if self._domain(at) == self._domain(row))
        return "nvlink_generations" if together >= request.members else "nvlink_domain"

    def _known_fine(self, gpu, request: PlacementRequest) -> bool:
        """Whether some usable device of the card will do: cards are barred as a whole or not at all."""
        if self.need_of(request) is None:
            return True
        return any(
            other.model == gpu.model and ok and self.may(other, request)
            for b in self.nodes
            for other, ok in zip(b.node.gpus, b.usable, strict=True)
        )
