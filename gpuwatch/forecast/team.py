"""The forecasters that take part, taught by the fleet: once by its older part, to be verified; once by all of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from gpuwatch.forecast.forecaster import FORECASTERS, Fleet, Forecaster, Learned
from gpuwatch.forecast.members import NAIVE, check_models

BASELINE = "seasonal_naive"
WINDOW_SEASONS = 14  # errors older than this say little about the present


class Team:
    """Members and what they learned from one fleet.

    tested: by id, taught without the newest `held_out_steps` steps, so that a fleet-wide member can be verified on
    them. dropped: id -> why a member could not learn.
    """

    def __init__(self, members: Mapping[str, Forecaster], fleet: Fleet) -> None:
        self.members = dict(members)
        self.tested: dict[str, Learned] = {}
        self.dropped: dict[str, str] = {}
        self._latest: dict[str, Learned] = {}
        # Lessons end at midnight: a member that keeps what it learned has to learn once a day, not at every evaluation.
        self._fleet = fleet.whole_days()
        days = max((values.size // fleet.season for values in self._fleet.series), default=0)
        held_out = min(WINDOW_SEASONS, days // 2) * fleet.season
        self.held_out_steps = held_out + fleet.phase
        for name, member in self.members.items():
            try:
                self.tested[name] = member.learn(self._fleet.before(held_out))
            except Exception as err:  # a member is a guest: its failure is told, the others stand
                self.dropped[name] = f"{type(err).__name__}: {err}"

    def latest(self, name: str) -> Learned:
        """Member `name` taught by the whole fleet; learned when first asked for. Raises what its `learn` raises."""
        if name not in self._latest:
            self._latest[name] = self.members[name].learn(self._fleet)
        return self._latest[name]


def enlist(ids: tuple[str, ...]) -> tuple[dict[str, Forecaster], dict[str, str]]:
    """The named forecasters and the naive rules, and apart, with the reason, those whose packages are missing.

    An unknown id is a SettingsError.
    """
    check_models(ids)
    ready: dict[str, Forecaster] = {}
    absent: dict[str, str] = {}
    for name in sorted({*NAIVE, *ids}):
        needs = FORECASTERS.get(name).needs
        lacking = [package for package in needs.packages if importlib.util.find_spec(package) is None]
        if lacking:
            absent[name] = f"{', '.join(lacking)} is not installed ({needs.install})"
        else:
            ready[name] = FORECASTERS.get(name)
    return ready, absent
