"""Encoder, decoder, JPEG and optical flow engines."""

from __future__ import annotations

from collections.abc import Iterable

import pynvml as nv

from gpuwatch_exporters.device.families import media as of
from gpuwatch_exporters.device.frame import Value
from gpuwatch_exporters.nvml.group import GROUPS, Board, Group
from gpuwatch_exporters.nvml.readings import scaled, share

_ENGINES = (
    (nv.nvmlDeviceGetEncoderUtilization, of.ENCODER),
    (nv.nvmlDeviceGetDecoderUtilization, of.DECODER),
    (nv.nvmlDeviceGetJpgUtilization, of.JPEG),
    (nv.nvmlDeviceGetOfaUtilization, of.OPTICAL_FLOW),
)
_MICRO = 1e-6


class Media(Group):
    help = "use of the video, JPEG and optical flow engines"

    def read(self, board: Board) -> Iterable[Value]:
        if board.mig_enabled:  # as with the GPU's own utilization, the board's engines are not one any more
            board.why = "mig_enabled"
            return
        for function, family in _ENGINES:
            told = board.ask(function)  # [percent, sample period]
            ratio = None if told is None else share(board, function.__name__, told[0])
            if ratio is not None:
                yield Value(family, (), ratio)


class MediaSessions(Group):
    help = "sessions of the video encoder and of frame buffer capture"
    cadence = "slow"

    def read(self, board: Board) -> Iterable[Value]:
        encoder = board.ask(nv.nvmlDeviceGetEncoderStats)
        if encoder is not None:
            sessions, frames, latency = encoder
            yield Value(of.SESSIONS, (), sessions)
            if sessions:  # without a session its rate and delay mean nothing
                yield Value(of.FRAMES, (), frames)
                yield Value(of.LATENCY, (), scaled(latency, _MICRO))
        capture = board.ask(nv.nvmlDeviceGetFBCStats)
        if capture is not None:
            yield Value(of.CAPTURE_SESSIONS, (), capture.sessionsCount)
            if capture.sessionsCount:
                yield Value(of.CAPTURE_FRAMES, (), capture.averageFPS)
                yield Value(of.CAPTURE_LATENCY, (), scaled(capture.averageLatency, _MICRO))


GROUPS.register("media")(Media())
GROUPS.register("media_sessions")(MediaSessions())
