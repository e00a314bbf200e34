"""The page of one situation, byte by byte, and the same whatever release of Slurm tells it."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from gpuwatch_exporters.slurm.ask.commands import Commands
from gpuwatch_exporters.slurm.count.single import Wanted
from gpuwatch_exporters.slurm.exporter import Settings, SlurmExporter
from gpuwatch_exporters.slurm.family import CLUSTER_LABEL, FAMILIES, Sample, gauge, own_counter
from gpuwatch_exporters.slurm.page import render

from gpuwatch.clock import FixedClock
from gpuwatch.errors import RegistryError
from tests.exporters.slurm.page import Page
from tests.exporters.slurm.programs import slurm_programs
from tests.exporters.slurm.situation import NOW, SCHEMAS

GOLDEN = Path(__file__).parent / "golden.prom"
EVERYTHING = Settings(per_user=True, single=Wanted(nodes=True, gpus=True, jobs=True))
pytestmark = pytest.mark.server


def page_text(folder: Path, schema: str) -> str:
    slurm_programs(folder, schema)
    clock = FixedClock(datetime.fromtimestamp(NOW, UTC))
    return SlurmExporter(Commands(folder), EVERYTHING, clock).cycle()


@pytest.fixture(scope="module")
def golden_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_text(tmp_path_factory.mktemp("golden"), "v0.0.42")


def test_the_page_of_the_situation(golden_text: str) -> None:
    if os.environ.get("GPUWATCH_UPDATE_GOLDEN"):
        GOLDEN.write_text(golden_text)
    assert golden_text == GOLDEN.read_text()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_release_gives_the_same_page(schema: str, golden_text: str, tmp_path: Path) -> None:
    """But for the line that names the schema."""
    text = page_text(tmp_path, schema)
    assert [line for line in text.splitlines() if "schema_info{" not in line] == [
        line for line in golden_text.splitlines() if "schema_info{" not in line
    ]
    assert f'schema_info{{source="commands",schema="{schema}"' in text


def test_promtool_finds_nothing(golden_text: str, promtool_program: str) -> None:
    checked = subprocess.run(
        [promtool_program, "check", "metrics"], input=golden_text, capture_output=True, text=True, timeout=30
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_every_gpu_is_counted_once(golden_text: str) -> None:
    page = Page(golden_text)
    kinds = {dict(labels)["gpu_type"] for name, labels in page.samples if name == "gpus_installed"}
    assert kinds == {"h100", "l40s", "a100", "untyped"}
    for kind in kinds:
        parts = [
            page.sum(f"gpus_{part}", gpu_type=kind)
            for part in ("allocated", "shared", "held", "free", "blocked", "unknown")
        ]
        assert sum(parts) == page.get("gpus_installed", gpu_type=kind)
        assert page.sum("gpus_by_node_condition", gpu_type=kind) == page.get("gpus_installed", gpu_type=kind)


def test_what_the_situation_comes_to(golden_text: str) -> None:
    page = Page(golden_text)
    assert page.sum("nodes") == 10
    assert page.get("gpus_allocated", gpu_type="h100") == 14
    assert page.get("gpus_held", gpu_type="h100") == 4
    assert page.get("gpus_free", gpu_type="h100") == 9
    assert page.get("gpus_free_promised", gpu_type="h100") == 6
    assert page.get("gpus_blocked", gpu_type="h100", condition="draining") == 5
    assert page.get("gpus_blocked", gpu_type="h100", condition="down") == 8
    assert page.get("gpus_blocked", gpu_type="l40s", condition="powered_down") == 4
    assert page.get("gpus_blocked", gpu_type="l40s", condition="maintenance") == 4
    assert page.get("gpus_shared", gpu_type="a100") == 2
    assert (
        page.get("gpus_free_stranded", gpu_type="a100", cause="memory") == page.get("gpus_free", gpu_type="a100") == 1
    )
    assert page.get("gres_installed", gres="shard", gres_type="a100") == 16
    assert page.get("gres_allocated", gres="shard") == 6
    assert page.get("jobs_gpus_allocated", partition="batch", gpu_type="h100") == 14
    assert page.get("jobs", partition="batch", state="pending") == 5 + 1 + 1
    assert page.get("jobs", partition="(several)", state="pending") == 1
    assert page.get("jobs", partition="batch", state="completing") == 1
    assert page.get("jobs_ended", state="completed") == 1
    assert page.get("pending_gpus", reason="JobArrayTaskLimit", gpu_type="untyped") == 10
    assert page.get("account_gpus_pending", account="biology", gpu_type="h100") == 32
    assert page.get("account_gpus_allocated", account="biology", gpu_type="h100") == 4
    assert page.get("user_jobs", user="bob", state="pending") == 1
    assert page.get("pending_oldest_age_seconds", partition="batch") == 90_000
    assert page.get("pending_oldest_eligible_age_seconds", partition="batch") == 3600
    assert page.get("jobs_gpu_seconds_left", partition="batch") == (5 + 4 + 5 + 3) * 5400
    assert page.get("cpus_free", nodes="cpu") == 64
    assert page.get("reservation_active", reservation="upkeep") == 1
    assert page.get("reservation_gpus", reservation="upkeep", gpu_type="l40s") == 4
    assert page.get("node_gpu_allocated", node="gpu001", gpu="6") == 1
    assert page.get("node_gpu_allocated", node="gpu001", gpu="5") == 0
    assert page.get("nodes_with_free_gpus", gpu_type="h100", gpus="3") == 1


def test_families_stand_once_sorted_and_with_their_cluster(golden_text: str) -> None:
    heads = [line.split()[2] for line in golden_text.splitlines() if line.startswith("# TYPE")]
    assert heads == sorted(set(heads))
    for name, each in FAMILIES.items():
        assert name in heads, f"{name} is not in the situation"
        assert CLUSTER_LABEL not in each.labels
        assert each.help.endswith("."), name
        assert not name.endswith(("_percent", "_mib", "_ms", "_minutes")), name
        lines = [line for line in golden_text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
        assert all(('cluster="north"' in line) == (each.scope == "cluster") for line in lines)


def test_labels_are_escaped_and_counted() -> None:
    family = next(each for _, each in FAMILIES.items() if each.labels == ("account", "state"))
    text = render([Sample(family, ('a"b\\c\n', "pending"), 1)], 'x"')
    assert 'cluster="x\\"",account="a\\"b\\\\c\\n",state="pending"} 1\n' in text
    with pytest.raises(ValueError, match="zip"):
        render([Sample(family, ("one",), 1)], "x")


def test_a_family_is_declared_once_and_named_after_its_kind() -> None:
    FAMILIES.ids()
    with pytest.raises(RegistryError):
        gauge("nodes", "Again.")
    with pytest.raises(ValueError, match="_total"):
        own_counter("things", "No total.")
    with pytest.raises(ValueError, match="not a metric name"):
        gauge("Nodes", "Upper case.")
