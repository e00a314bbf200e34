"""The text file: whole, readable, without values that no longer hold, and gone when the exporter is."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch.errors import SettingsError
from tests.exporters.serving.harness import SOON, served
from tests.exporters.serving.tiny import PAGE
from tests.servers import wait_for

pytestmark = pytest.mark.server


def stamp(text: str) -> float:
    found = re.search(r'^gpuwatch_exporter_textfile_timestamp_seconds\{exporter="tiny"\} (\S+)$', text, re.MULTILINE)
    assert found, text
    return float(found[1])


def test_each_cycle_writes_the_page_and_the_end_takes_it_away(tmp_path: Path) -> None:
    file = tmp_path / "tiny.prom"
    with served(tmp_path, "--textfile", str(file)) as service:
        wait_for("values", lambda: "tiny_ratio" in file.read_text(), every=SOON)
        text = file.read_text()
        list(text_string_to_metric_families(text))
        assert file.stat().st_mode & 0o777 == 0o644
        assert stamp(text) == pytest.approx(time.time(), abs=60)
        assert "gpuwatch_exporter_last_success_timestamp_seconds" in text
        wait_for("the next", lambda: stamp(file.read_text()) > stamp(text), every=SOON)
        assert [each.name for each in tmp_path.glob("*prom*")] == ["tiny.prom"]
        assert service.port  # HTTP goes on beside it
    assert not file.exists()
    # A cycle that hung and ends after all leaves nothing behind.
    assert service.service._textfile is not None
    assert not service.service._textfile.write()
    assert not file.exists()


def test_without_http_the_file_is_all_there_is(tmp_path: Path) -> None:
    file = tmp_path / "tiny.prom"
    with served(tmp_path, "--textfile", str(file), "--listen", "off") as service:
        wait_for("values", lambda: "tiny_ratio" in file.read_text(), every=SOON)
        assert service.service.address == ""


def test_a_failed_cycle_leaves_a_file_that_tells_it_and_holds_no_values(tmp_path: Path) -> None:
    file = tmp_path / "tiny.prom"
    with served(tmp_path, "--textfile", str(file)) as service:
        service.page.unlink()
        wait_for("no values", lambda: "tiny_ratio" not in file.read_text(), every=SOON)
        assert 'gpuwatch_exporter_values_served{exporter="tiny"} 0\n' in file.read_text()
        service.page.write_text(PAGE)
        wait_for("values", lambda: "tiny_ratio" in file.read_text(), every=SOON)


def test_a_cycle_that_hangs_takes_the_values_out_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tiny.prom"
    with served(tmp_path, "--textfile", str(file)) as service:
        wait_for("values", lambda: "tiny_ratio" in file.read_text(), every=SOON)
        service.page.write_text("hang")
        service.service.cycles.stale_seconds = 0.2

        def withdrawn() -> bool:
            service.service.tick()  # as the main thread does
            return "tiny_ratio" not in file.read_text()

        wait_for("no values", withdrawn, seconds=5, every=SOON)


def test_a_file_left_by_a_crash_is_emptied_before_the_first_cycle(tmp_path: Path) -> None:
    file = tmp_path / "tiny.prom"
    file.write_text("old_ratio 1\n")
    with served(tmp_path, "--textfile", str(file), first="hang"):
        assert "old_ratio" not in file.read_text()
        assert 'gpuwatch_exporter_values_served{exporter="tiny"} 0\n' in file.read_text()


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tiny.prom"
    page = "".join(f'big{{n="{number}"}} 1\n' for number in range(2000))
    broken: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            text = file.read_text()
            if "textfile_timestamp_seconds{" not in text or not text.endswith("\n"):
                broken.append(text)

    with served(tmp_path, "--textfile", str(file), first=page) as service:
        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(2):
            service.next_cycle()
        done.set()
        reader.join(5)
    assert not broken


def test_a_file_that_cannot_be_written_is_counted_and_told_once_and_cycles_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "textfiles"
    folder.mkdir()
    file = folder / "tiny.prom"
    with served(tmp_path, "--textfile", str(file)) as service:
        wait_for("the file", file.exists, every=SOON)
        folder.rename(tmp_path / "away")
        wait_for("failures", lambda: service.service.metrics.textfile_failures >= 2, every=SOON)
        assert caplog.text.count("tiny.prom not written") == 1
        (tmp_path / "away").rename(folder)
        wait_for("values", lambda: 'textfile_failures_total{exporter="tiny"} 0' not in file.read_text(), every=SOON)


def test_a_folder_that_is_not_there_is_an_error_at_start(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingsError, match="nothing can be written"),
        served(tmp_path, "--textfile", str(tmp_path / "none" / "tiny.prom")),
    ):
        pass


def test_a_name_that_node_exporter_does_not_read_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with served(tmp_path, "--textfile", str(tmp_path / "tiny.txt")):
        assert "only files that end in .prom" in caplog.text
