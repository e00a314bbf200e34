"""Whether a forecaster's packages are there; where every one must be, a missing one is a failure."""

from __future__ import annotations

import importlib.util

import pytest

from gpuwatch.forecast.forecaster import FORECASTERS
from tests.conftest import MUST_RUN


def need_packages(model: str) -> None:
    """Skips the test, or fails it when GPUWATCH_REQUIRE_SERVERS=1, unless `model` can run here."""
    needs = FORECASTERS.get(model).needs
    lacking = [package for package in needs.packages if importlib.util.find_spec(package) is None]
    if lacking and MUST_RUN:
        pytest.fail(f"{model} needs {lacking} and GPUWATCH_REQUIRE_SERVERS=1")
    if lacking:
        pytest.skip(f"{model} needs {', '.join(lacking)}: {needs.install}")
