"""The LSTM forecaster: repeatable, quick, blind to what it is verified on, and worth its name where it can learn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gpuwatch.forecast.forecast import forecast_all
from gpuwatch.forecast.forecaster import Fleet
from gpuwatch.forecast.models import lstm
from gpuwatch.forecast.models.lstm import Lstm
from gpuwatch.forecast.team import Team
from gpuwatch.model.history import History
from tests.builders import NOW
from tests.forecast.installed import need_packages
from tests.forecast.test_forecast import SETTINGS, a_series, daily

TRAINING_SECONDS = 10  # for 40 series of 336 hours on one core


@pytest.fixture(autouse=True)
def _installed() -> None:
    need_packages("lstm")
    lstm._train.cache_clear()


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(lstm, "_UPDATES", 40)
    yield
    lstm._train.cache_clear()  # nobody else shall be given these


def fleet(pools: int, hours: int) -> Fleet:
    """Pools of different size that fall back to a level of their own within a day, after bursts."""
    rng = np.random.default_rng(4)
    series = []
    for pool in range(pools):
        level, scale, values = 0.0, 2.0 ** (pool % 6), []
        for _ in range(hours):
            level = 0.88 * level + (rng.uniform(4, 9) if rng.random() < 0.04 else 0)
            values.append(scale * (3 + level))
        series.append(np.array(values))
    return Fleet(tuple(series), 24)


def error(predict, values: np.ndarray, first: int) -> float:
    origins = range(first, values.size - 24, 7)
    return float(np.mean([np.abs(predict(values[:o]) - values[o : o + 24]).mean() for o in origins]))


def test_training_is_quick_and_beats_both_naive_rules_where_there_is_something_to_learn():
    known, whole = fleet(40, 504).before(168), fleet(40, 504)
    assert [values.size for values in known.series] == [336] * 40
    started = time.process_time()
    trained = Lstm().learn(known)
    spent = time.process_time() - started
    print(f"training took {spent:.1f} s of CPU")
    assert spent < TRAINING_SECONDS
    for values in whole.series[:6]:
        own = error(lambda past: trained.fit(past, 24).predict(past, 24).mean, values, 336)
        assert own < 0.95 * error(lambda past: np.full(24, past[-1]), values, 336)
        assert own < 0.95 * error(lambda past: past[-24:], values, 336)


@pytest.mark.parametrize(("windows", "every"), [(0, 1), (10_000, 1), (64_001, 5), (320_001, 7), (640_001, 11)])
def test_a_large_fleet_is_thinned_without_losing_an_hour_of_the_day(windows, every):
    assert lstm._stride(windows, 24) == every


@pytest.mark.usefixtures("_hasty")
def test_equal_fleets_give_equal_nets_and_nobody_elses_random_state_moves():
    import torch

    def answer() -> np.ndarray:
        lstm._train.cache_clear()
        past = fleet(4, 240)
        return Lstm().learn(past).predict(past.series[0], 24).mean

    torch.manual_seed(1)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    first = answer()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    torch.manual_seed(2)
    np.testing.assert_array_equal(answer(), first)


@pytest.mark.usefixtures("_hasty")
def test_what_it_is_verified_on_does_not_touch_what_is_verified():
    past = fleet(4, 336)
    held_out = Team({"lstm": Lstm()}, past).held_out_steps
    changed = Fleet(tuple(np.r_[v[:-held_out], 7 * v[-held_out:]] for v in past.series), 24)
    one, other = (Team({"lstm": Lstm()}, each).tested["lstm"] for each in (past, changed))
    window = past.series[0][:100]
    np.testing.assert_array_equal(one.predict(window, 24).mean, other.predict(window, 24).mean)


@pytest.mark.usefixtures("_hasty")
def test_a_day_is_learned_once():
    past = fleet(4, 336 + 5)
    for hour in range(5):
        Team({"lstm": Lstm()}, Fleet(past.before(4 - hour).series, 24, phase=hour + 1))
    assert lstm._train.cache_info().misses == 1


@pytest.mark.usefixtures("_hasty")
def test_it_is_silent_beyond_a_day_and_scales_with_its_series():
    past = fleet(3, 240)
    trained = Lstm().learn(past)
    values = past.series[0]
    mean = trained.predict(values, 30).mean
    assert np.isnan(mean[24:]).all()
    np.testing.assert_allclose(trained.predict(1e6 * values, 24).mean, 1e6 * mean[:24], rtol=1e-4)
    assert trained.predict(values, 6).mean.size == 6


@pytest.mark.parametrize(
    ("series", "season", "why"),
    [((np.arange(80.0),), 24, "too few"), ((np.full(900, 3.0),), 24, "too few"), ((np.arange(900.0),), 288, "288")],
)
def test_it_says_why_it_cannot_learn(series, season, why):
    with pytest.raises(ValueError, match=why):
        Lstm().learn(Fleet(series, season))


def test_it_leads_where_it_earned_it_and_says_so():
    history = History(series=tuple(a_series(v, pool=f"p{i}") for i, v in enumerate(fleet(12, 504).series)))
    done = forecast_all(history, NOW, replace(SETTINGS, forecast_models=("lstm",)))
    leads = [f for f in done if f.model == "lstm"]
    assert len(leads) >= 8
    assert all("of the daily repeat's" in f.model_reason and f.skill_vs_seasonal_naive > 0 for f in leads)


@pytest.mark.usefixtures("_hasty")
def test_it_does_not_lead_where_yesterday_is_exact():
    (f,) = forecast_all(History(series=(a_series(daily(336)),)), NOW, replace(SETTINGS, forecast_models=("lstm",)))
    assert f.model == "seasonal_naive"
