"""A service over HTTP: pages, health, landing page, actions, and a cycle that fails or hangs."""

from __future__ import annotations

import gzip
import re
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpuwatch import __version__
from gpuwatch.errors import GpuwatchError, SettingsError
from tests.exporters.serving.harness import SOON, served
from tests.exporters.serving.tiny import PAGE
from tests.exporters.serving.wire import ask, connected, read_reply
from tests.servers import fetch, get, wait_for

pytestmark = pytest.mark.server


def names(text: str) -> set[str]:
    return {each.name for each in text_string_to_metric_families(text)}


def value(text: str, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


def test_metrics_as_text_and_packed(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        answer = fetch(service.url + "/metrics")
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert {"tiny_ratio", "gpuwatch_exporter_cycles", "process_cpu_seconds"} <= names(answer.body.decode())
        packed = fetch(service.url + "/metrics", **{"Accept-Encoding": "gzip"})
        assert packed.headers["Content-Encoding"] == "gzip"
        assert "tiny_ratio" in names(gzip.decompress(packed.body).decode())
        assert f'gpuwatch_exporter_build_info{{exporter="tiny",version="{__version__}"}} 1\n' in answer.body.decode()


def test_health_follows_the_values_and_life_does_not(tmp_path: Path) -> None:
    with served(tmp_path, first=None) as service:
        assert get(service.url + "/-/ready")[0] == 503
        assert get(service.url + "/-/healthy")[0] == 200
        service.page.write_text(PAGE)
        wait_for("ready", lambda: get(service.url + "/-/ready")[0] == 200, every=SOON)
        service.page.unlink()
        wait_for("not ready", lambda: get(service.url + "/-/ready")[0] == 503, every=SOON)
        assert get(service.url + "/-/healthy")[0] == 200


def test_a_failed_cycle_takes_the_values_away_and_the_next_good_one_brings_them_back(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        service.page.unlink()
        service.next_cycle()
        text = get(service.url + "/metrics")[1]
        assert "tiny_ratio" not in text
        assert value(text, 'gpuwatch_exporter_values_served{exporter="tiny"}') == 0
        assert value(text, 'gpuwatch_exporter_cycle_failures_total{exporter="tiny"}') >= 1
        assert value(text, 'gpuwatch_exporter_last_success_timestamp_seconds{exporter="tiny"}') > 0
        service.page.write_text(PAGE)
        service.next_cycle()
        assert "tiny_ratio" in get(service.url + "/metrics")[1]


def test_a_hanging_first_cycle_leaves_a_page_with_what_the_exporter_tells_of_itself(tmp_path: Path) -> None:
    with served(tmp_path, first="hang") as service:
        status, text = get(service.url + "/metrics")
        assert status == 200
        assert value(text, 'gpuwatch_exporter_values_served{exporter="tiny"}') == 0
        assert value(text, 'gpuwatch_exporter_cycles_total{exporter="tiny"}') == 0
        assert get(service.url + "/-/ready")[0] == 503


def test_a_cycle_that_hangs_after_good_ones_lets_the_values_end(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        service.service.cycles.stale_seconds = 0.3
        assert "tiny_ratio" in get(service.url + "/metrics")[1]
        service.page.write_text("hang")
        wait_for("no values", lambda: "tiny_ratio" not in get(service.url + "/metrics")[1], seconds=5, every=SOON)


def test_the_landing_page_shows_notes_escaped_and_links(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        answer = fetch(service.url + "/")
        text = answer.body.decode()
        assert answer.headers["Content-Type"].startswith("text/html")
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "<li>file page</li>" in text
        assert "<li>&lt;b&gt;&amp;</li>" in text
        assert all(f'href="{path}"' in text for path in ("/metrics", "/-/healthy", "/-/ready"))
        service.page.unlink()
        service.next_cycle()
        assert "no values are served now" in get(service.url + "/")[1]


@pytest.mark.parametrize("path", ["/nothing", "/metrics/", "/-/", "/-/nothing", "//", "/release"])
def test_other_addresses_are_not_found(tmp_path: Path, path: str) -> None:
    with served(tmp_path) as service:
        assert ask(service.port, f"GET {path} HTTP/1.1\r\n\r\n".encode()).status == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/metrics", "GET, HEAD"), ("DELETE", "/", "GET, HEAD"), ("PUT", "/-/healthy", "GET, HEAD"),
        ("GET", "/-/release", "POST"), ("HEAD", "/-/resume", "POST"),
    ],
)  # fmt: skip
def test_other_methods_are_told_which_are_right(tmp_path: Path, method: str, path: str, allowed: str) -> None:
    with served(tmp_path) as service:
        reply = ask(service.port, f"{method} {path} HTTP/1.1\r\n\r\n".encode(), head=method == "HEAD")
        assert (reply.status, reply.headers["allow"]) == (405, allowed)


def test_head_tells_the_length_of_the_page(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        reply = ask(service.port, b"HEAD /metrics HTTP/1.1\r\n\r\n", head=True)
        assert reply.status == 200
        assert int(reply.headers["content-length"]) > len(PAGE)


def test_scrapes_are_counted_by_status(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        for _ in range(3):
            get(service.url + "/metrics")
        ask(service.port, b"POST /metrics HTTP/1.1\r\n\r\n")
        get(service.url + "/")
        service.next_cycle()
        text = get(service.url + "/metrics")[1]
        assert value(text, 'gpuwatch_exporter_scrapes_total{exporter="tiny",code="200"}') == 3
        assert value(text, 'gpuwatch_exporter_scrapes_total{exporter="tiny",code="405"}') == 1


def test_on_loopback_release_and_resume_act_and_the_next_cycle_comes_at_once(tmp_path: Path) -> None:
    with served(tmp_path, "--interval", "60") as service:
        before = service.service.cycles.tally.cycles
        reply = ask(service.port, b"POST /-/release HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        assert (reply.status, reply.body) == (200, b"released\n")
        wait_for("a cycle", lambda: service.service.cycles.tally.cycles > before, seconds=5, every=SOON)
        wait_for("its page", lambda: "tiny_ratio" not in get(service.url + "/metrics")[1], seconds=5, every=SOON)
        assert ask(service.port, b"POST /-/resume HTTP/1.1\r\n\r\n").body == b"collecting\n"
        assert service.exporter.state == "collecting"


def test_from_elsewhere_nobody_unknown_may_act(tmp_path: Path) -> None:
    with served(tmp_path, "--listen", ":0") as service:
        reply = ask(service.port, b"POST /-/release HTTP/1.1\r\n\r\n")
        assert reply.status == 403
        assert b"--web.config.file" in reply.body
        assert service.exporter.state == "collecting"
        assert get(service.url + "/metrics")[0] == 200


@pytest.mark.parametrize("header", ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"])
def test_no_page_in_a_browser_may_act(tmp_path: Path, header: str) -> None:
    with served(tmp_path) as service:
        assert ask(service.port, f"POST /-/release HTTP/1.1\r\n{header}\r\n\r\n".encode()).status == 403
        assert service.exporter.state == "collecting"


def test_an_action_that_fails_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise GpuwatchError("the library is gone")

    with served(tmp_path) as service:
        monkeypatch.setattr(service.exporter, "actions", lambda: {"release": broken})
        reply = ask(service.port, b"POST /-/release HTTP/1.1\r\n\r\n")
        assert (reply.status, reply.body) == (500, b"the library is gone\n")


def test_an_action_that_hangs_holds_up_neither_scrapes_nor_the_landing_page_and_is_not_begun_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, inside = threading.Event(), threading.Event()

    def hangs() -> str:
        inside.set()
        go.wait(10)
        return "released"

    request = b"POST /-/release HTTP/1.1\r\n\r\n"
    with served(tmp_path) as service, connected(service.port) as sock:
        monkeypatch.setattr(service.exporter, "actions", lambda: {"release": hangs})
        sock.sendall(request)
        assert inside.wait(5)
        assert get(service.url + "/metrics")[0] == 200
        assert get(service.url + "/")[0] == 200
        assert ask(service.port, request).status == 409
        go.set()
        assert read_reply(sock).body == b"released\n"


def test_every_address_of_the_machine_is_served_that_of_ipv6_too(tmp_path: Path) -> None:
    with served(tmp_path, "--listen", ":0") as service:
        assert get(service.url + "/-/healthy")[0] == 200
        if service.service.address.startswith("["):
            assert get(f"http://[::1]:{service.port}/-/healthy")[0] == 200


def test_an_address_that_is_taken_or_unknown_is_an_error_that_names_it(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        taken = f"127.0.0.1:{service.port}"
        (tmp_path / "other").mkdir()
        with pytest.raises(GpuwatchError, match=re.escape(taken)), served(tmp_path / "other", "--listen", taken):
            pass
    nowhere = "nowhere.invalid:9437"
    with pytest.raises(GpuwatchError, match=nowhere), served(tmp_path, "--listen", nowhere):
        pass


def test_without_http_a_file_is_needed(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--textfile"), served(tmp_path, "--listen", "off"):
        pass


def test_the_exporter_is_closed_once(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        pass
    assert service.exporter.closed == 1


def test_a_kept_connection_is_served_cycle_after_cycle(tmp_path: Path) -> None:
    with served(tmp_path) as service, connected(service.port) as sock:
        for _ in range(3):
            sock.sendall(b"GET /metrics HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n")
            assert b"tiny_ratio" in gzip.decompress(read_reply(sock).body)
            service.next_cycle()
