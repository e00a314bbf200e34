"""One small LSTM for all series of the fleet: two days in, one day out at once. Needs torch, which it imports late.

It sees each window around its newest value and in units of its own spread, so that large and small pools teach each
other. Its answer starts from the plain rules (newest value, yesterday, mean of both days) and learns when to trust
which, hour by hour, and what to add.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gpuwatch.forecast.forecaster import FORECASTERS, Fleet, Needs, Prediction, Values, filled

_WINDOW_SEASONS = 2  # more input meant fewer windows to learn from, and worse forecasts
_HIDDEN = 32
_UPDATES = 500  # the cost of training does not grow with the fleet
_BATCH = 128
_LEARNING_RATE = 5e-3
_SEED = 7
_MIN_WINDOWS = 64  # a week of one series
_MAX_SEASON = 48  # longer days would take minutes to learn
_FLOOR = 0.5  # GPUs: a window that varies less is not blown up
_CLIP = 8.0


@dataclass(frozen=True, slots=True)
class _Trained:
    """The trained net; serves every series whose day has `season` steps."""

    lstm: Any
    head: Any
    season: int

    def fit(self, history: Values, season: int) -> _Trained:
        if season != self.season:
            raise ValueError(f"it learned days of {self.season} steps, not {season}")
        return self

    def predict(self, history: Values, horizon: int) -> Prediction:
        """One day ahead; silent beyond it."""
        window = filled(history, self.season)[-_WINDOW_SEASONS * self.season :][None, :]
        if window.shape[1] < _WINDOW_SEASONS * self.season:
            raise ValueError("it needs two whole days")
        scaled, last, scale = _scaled(window)
        with _torch() as torch, torch.no_grad():
            ahead = _forward(torch, self.lstm, self.head, torch.from_numpy(scaled), self.season).numpy()
        day = (ahead.astype(np.float64) * scale + last)[0]
        if not np.isfinite(day).all():
            raise ValueError("its forecast is not a number")
        mean = np.full(horizon, np.nan)
        mean[: self.season] = day[:horizon]
        return Prediction(mean)


class Lstm:
    """Global model, trained once a day on the whole days of the fleet."""

    id = "lstm"
    title = "one small LSTM for all series"
    needs = Needs(
        seasons=_WINDOW_SEASONS, packages=("torch",), install="pip install 'gpuwatch-stack[lstm]'", fleet=True
    )

    def learn(self, fleet: Fleet) -> _Trained:
        return _train(tuple(values.tobytes() for values in fleet.series), fleet.season)


@lru_cache(maxsize=4)  # an unchanged fleet (all day long) is not learned again
def _train(series: tuple[bytes, ...], season: int) -> _Trained:
    if season > _MAX_SEASON:
        raise ValueError(f"days of {season} steps are more than it can learn quickly (at most {_MAX_SEASON})")
    inputs, targets, weights = _lessons([np.frombuffer(each) for each in series], season)
    if len(inputs) < _MIN_WINDOWS:
        raise ValueError(
            f"{len(inputs)} windows of three days with any change are too few to learn from ({_MIN_WINDOWS})"
        )
    with _torch() as torch:
        with torch.random.fork_rng(devices=[]):  # the caller's random state is not ours to move
            torch.manual_seed(_SEED)
            lstm = torch.nn.LSTM(inputs.shape[2], _HIDDEN, batch_first=True)
            head = torch.nn.Linear(_HIDDEN, 4 * season)
        torch.nn.init.zeros_(head.weight)  # at first an even blend of the plain rules
        torch.nn.init.zeros_(head.bias)
        parameters = [*lstm.parameters(), *head.parameters()]
        draw = torch.Generator().manual_seed(_SEED)
        optimizer = torch.optim.AdamW(parameters, lr=_LEARNING_RATE, weight_decay=1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _LEARNING_RATE, total_steps=_UPDATES)
        known, wanted, weight = map(torch.from_numpy, (inputs, targets, weights))
        for _ in range(_UPDATES):
            at = torch.randint(len(known), (_BATCH,), generator=draw)
            came = torch.isfinite(wanted[at])
            missed = (_forward(torch, lstm, head, known[at], season) - torch.nan_to_num(wanted[at])).abs()
            loss = (missed * weight[at] * came).sum() / came.sum().clamp(min=1)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
    return _Trained(lstm.eval(), head.eval(), season)


def _forward(torch: Any, lstm: Any, head: Any, known: Any, season: int) -> Any:
    """(N, season) forecasts in units of each window, where the newest value is 0."""
    states, _ = lstm(known)
    parts = head(states[:, -1]).view(-1, 4, season)
    trust = torch.softmax(parts[:, :3], dim=1)
    days = known[:, :, 0].reshape(len(known), _WINDOW_SEASONS, season)
    return trust[:, 1] * days[:, -1] + trust[:, 2] * days.mean(dim=1) + parts[:, 3]


def _lessons(fleet: list[Values], season: int) -> tuple[Any, Any, Any]:
    """(N, steps, 2) inputs, (N, season) targets with NaN where nothing came, (N, 1) weights; windows that move only.

    An error weighs as it does in the comparison with the daily repeat: in units of how much the series moves in a day.
    """
    length = (_WINDOW_SEASONS + 1) * season
    inputs, targets, weights = [np.empty((0, length - season, 2))], [np.empty((0, season))], [np.empty((0, 1))]
    every = _stride(sum(max(0, values.size - length + 1) for values in fleet), season)
    for values in fleet:
        if values.size < length or not np.isfinite(values).any():
            continue
        whole = filled(values, season)
        windows = np.lib.stride_tricks.sliding_window_view(whole, length)[::every]
        moves = np.ptp(windows, axis=1) > 0
        came = np.lib.stride_tricks.sliding_window_view(values, length)[::every][moves, length - season :]
        scaled, last, scale = _scaled(windows[moves, : length - season])
        daily = max(_FLOOR, float(np.abs(whole[season:] - whole[:-season]).mean()))
        inputs.append(scaled)
        targets.append((came - last) / scale)
        weights.append(np.clip(scale / daily, 0, 10))
    known, wanted, weight = (np.concatenate(part).astype(np.float32) for part in (inputs, targets, weights))
    return known, wanted, weight


def _stride(windows: int, season: int) -> int:
    """Every how many steps a window is taken: not more of them than are drawn, and all hours of the day among them."""
    every = max(1, math.ceil(windows / (_UPDATES * _BATCH)))
    while math.gcd(every, season) > 1:
        every += 1
    return every


def _scaled(windows: Values) -> tuple[Any, Values, Values]:
    """(N, steps, 2) float32 values and changes in units of each window; its newest value and its unit, (N, 1) each."""
    last = windows[:, -1:]
    scale = np.maximum(windows.std(axis=1, keepdims=True), _FLOOR)
    values = (windows - last) / scale
    changes = np.diff(values, axis=1, prepend=values[:, :1])
    return np.clip(np.stack([values, changes], axis=2), -_CLIP, _CLIP).astype(np.float32), last, scale


@contextmanager
def _torch() -> Iterator[Any]:
    """torch on one thread: more would make results depend on the machine, and take its cores from other work."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch: Any = importlib.import_module("torch")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield torch
        finally:
            torch.set_num_threads(threads)


FORECASTERS.register(Lstm.id)(Lstm())
