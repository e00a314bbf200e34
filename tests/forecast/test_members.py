"""Who takes part, what each may have learned from, and what is not imported until it is asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from gpuwatch.errors import SettingsError
from gpuwatch.forecast import team as team_module
from gpuwatch.forecast.backtest import run_backtest
from gpuwatch.forecast.forecast import forecast_all
from gpuwatch.forecast.forecaster import FORECASTERS, Fleet, Needs, Prediction
from gpuwatch.forecast.members import check_models, known_models
from gpuwatch.forecast.team import Team, enlist
from gpuwatch.model.history import History
from gpuwatch.model.settings import AnalysisSettings
from tests.builders import NOW
from tests.forecast.test_forecast import SETTINGS, a_series, daily
from tests.processes import printed


class _Witness:
    """A fleet-wide member that remembers what it was shown, and forecasts the largest value of it."""

    id, title, needs = "witness", "witness", Needs(fleet=True)

    def __init__(self) -> None:
        self.shown: list[Fleet] = []

    def learn(self, fleet):
        self.shown.append(fleet)
        return _Largest(max(float(np.nanmax(values)) for values in fleet.series))


class _Largest:
    def __init__(self, number: float) -> None:
        self.number = number

    def fit(self, history, season):
        return self

    def predict(self, history, horizon):
        return Prediction(np.full(horizon, self.number))


def test_file_names_and_registered_ids_are_the_same():
    assert known_models() == FORECASTERS.ids()


def test_default_members_are_known_and_cheap():
    members, absent = enlist(AnalysisSettings().forecast_models)
    assert not absent
    assert all(not member.needs.packages and not member.needs.fleet for member in members.values())


def test_an_unknown_member_lists_the_known():
    with pytest.raises(SettingsError, match="no forecaster is called 'ltsm'") as caught:
        check_models(("median", "ltsm"))
    assert "lstm, median" in caught.value.todo
    with pytest.raises(SettingsError):
        forecast_all(History(), NOW, replace(SETTINGS, forecast_models=("ltsm",)))


def test_the_naive_rules_always_take_part():
    assert sorted(enlist(())[0]) == ["last_value", "seasonal_naive"]
    assert sorted(enlist(("median",))[0]) == ["last_value", "median", "seasonal_naive"]


def test_a_member_without_its_package_is_told_with_what_to_install(monkeypatch):
    monkeypatch.setattr(team_module.importlib.util, "find_spec", lambda name: None if name == "torch" else object())
    history = History(series=(a_series(daily(240, 2)),))
    (f,) = forecast_all(history, NOW, replace(SETTINGS, forecast_models=("lstm", "median")))
    assert f.status == "ok"
    assert "lstm took no part: torch is not installed (pip install 'gpuwatch-stack[lstm]')" in f.model_reason


@pytest.mark.parametrize("phase", [0, 7, 23])
def test_a_fleet_wide_member_is_verified_only_on_what_it_had_not_seen(phase):
    values = np.arange(336.0 + phase)  # rising: the largest value tells the newest step seen
    witness = _Witness()
    team = Team({"witness": witness}, Fleet((values, values[50:]), 24, phase))
    test = run_backtest(values, 24, 24, team, first=24)
    (shown,) = witness.shown
    newest = max(float(each.max()) for each in shown.series)
    spoken = np.isfinite(test.predicted["witness"]).all(axis=1)
    assert newest == 336 - 7 * 24 - 1
    assert test.origins[spoken].min() > newest
    assert spoken.sum() >= 12
    assert team.held_out_steps == 7 * 24 + phase


def test_a_fleet_wide_member_learns_again_only_when_it_is_needed_and_up_to_midnight():
    values = np.arange(350.0)
    witness = _Witness()
    team = Team({"witness": witness}, Fleet((values,), 24, phase=5))
    assert team.latest("witness") is team.latest("witness")
    assert len(witness.shown) == 2
    assert witness.shown[1].series[0][-1] == 344  # five steps of the new day are left out
    assert witness.shown[1].series[0].size % 24 == 0


def test_a_member_that_cannot_learn_is_dropped_with_its_reason():
    class Refuses(_Witness):
        def learn(self, fleet):
            raise ValueError("too few")

    team = Team({"refuses": Refuses(), **enlist(())[0]}, Fleet((np.arange(240.0),), 24))
    assert run_backtest(np.arange(240.0), 24, 24, team, 24).dropped == {"refuses": "ValueError: too few"}


def test_series_on_other_clocks_are_fleets_of_their_own():
    history = History(
        series=(
            a_series(daily(240, 2), pool="hourly"),
            a_series(daily(480, 2), pool="half-hourly", step=1800),
            a_series(daily(240, 2), pool="late", ends=NOW - timedelta(minutes=15)),
        )
    )
    assert [f.status for f in forecast_all(history, NOW, SETTINGS)] == ["ok"] * 3


_PROBE = """
import sys
{what}
loaded = [name for name in ("torch", "statsmodels") if name in sys.modules]
assert not loaded, loaded
"""


@pytest.mark.parametrize(
    "what",
    [
        "import gpuwatch",
        "from gpuwatch.__main__ import main; assert main(['--help']) == 0; assert main(['forecast', '--help']) == 0",
        "from gpuwatch.__main__ import main; assert main(['forecast', '--trace', 'demo', '--kind', 'all']) == 0",
        "from gpuwatch.__main__ import main; assert main(['demo', '--once', '-q']) == 0",
        "from gpuwatch.forecast.forecaster import FORECASTERS; assert 'lstm' in FORECASTERS.ids()",
        "from gpuwatch.config import parse_config; parse_config('[analysis]\\nforecast_models = [\"lstm\"]')",
    ],
)
def test_heavy_packages_are_not_imported_unasked(what):
    printed(_PROBE.format(what=what))
