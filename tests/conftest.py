"""What all tests share: where the traces are, which real servers there are, and what a missing one means."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

MUST_RUN = os.environ.get("GPUWATCH_REQUIRE_SERVERS") == "1"

# One profile for every property: the same examples at each run, no judgment of speed on a busy machine, and a failure
# is shown as it was found. `pytest --hypothesis-profile=shrink` looks for a smaller example, which may take minutes.
settings.register_profile(
    "gpuwatch",
    derandomize=True,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow,),
)
settings.register_profile(
    "shrink", settings.get_profile("gpuwatch"), phases=(Phase.explicit, Phase.generate, Phase.shrink)
)
settings.load_profile("gpuwatch")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew instead of comparing with them"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden"):
        os.environ["GPUWATCH_UPDATE_GOLDEN"] = "1"  # read where no request is at hand


def need_program(name: str) -> str:
    """Path of a program that a test runs; skips with a reason, or fails where every program must be there."""
    found = shutil.which(name)
    if found:
        return found
    if MUST_RUN:
        pytest.fail(f"{name} is not installed and GPUWATCH_REQUIRE_SERVERS=1")
    pytest.skip(f"{name} is not installed (Debian: apt install prometheus has prometheus and promtool)")


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder with the public traces (openb/, demand/), named by GPUWATCH_TRACES."""
    named = os.environ.get("GPUWATCH_TRACES")
    if not named:
        pytest.skip("GPUWATCH_TRACES does not name a folder with the public traces")
    folder = Path(named)
    if not (folder / "openb").is_dir():
        pytest.skip(f"no openb folder in GPUWATCH_TRACES={folder}")
    return folder


@pytest.fixture(scope="session")
def prometheus_program() -> str:
    return need_program("prometheus")


@pytest.fixture(scope="session")
def promtool_program() -> str:
    return need_program("promtool")


# Who uses the fixture says so with the mark, so that `-m "not server and not traces"` leaves out what it names.
MARK_OF_FIXTURE = {"traces": "traces", "prometheus_program": "server"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the file that takes longest and mostly waits, so that the other worker has work meanwhile."""
    items.sort(key=lambda item: item.path.name != "test_chain.py")
    for item in items:
        for fixture in set(getattr(item, "fixturenames", ())) & MARK_OF_FIXTURE.keys():
            if item.get_closest_marker(MARK_OF_FIXTURE[fixture]) is None:
                raise pytest.UsageError(
                    f"{item.nodeid} uses {fixture!r} and is not marked {MARK_OF_FIXTURE[fixture]!r}"
                )
