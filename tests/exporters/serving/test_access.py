"""A service behind a web configuration: passwords, TLS, client certificates, limits, and files that change."""

from __future__ import annotations

import base64
import http.client
import os
import ssl
from pathlib import Path

import bcrypt
import pytest
from cryptography import x509

from gpuwatch.errors import SettingsError
from tests.exporters.serving.certificates import Authority, Pair
from tests.exporters.serving.harness import SOON, Served, served
from tests.exporters.serving.wire import Reply, ask, connected, ended, everything, read_reply
from tests.servers import wait_for

pytestmark = pytest.mark.server


def hashed(password: str) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


def authorized(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def get(service: Served, path: str = "/metrics", method: str = "GET", **headers: str) -> Reply:
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    return ask(service.port, f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode())


def write(file: Path, text: str) -> None:
    """Writes a text that is told from the one before by its time, however coarse the clock of the file system."""
    before = file.stat().st_mtime_ns if file.exists() else 0
    file.write_text(text)
    os.utime(file, ns=(before + 10**9, max(before + 10**9, file.stat().st_mtime_ns)))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at for each request."""
    monkeypatch.setattr("gpuwatch_exporters.serving.web_config.live._LOOK_SECONDS", 0.0)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def client(authority: Authority) -> Pair:
    return authority.sign("client", x509.DNSName("prometheus.example"))


class TestPasswords:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        file = tmp_path / "web.yml"
        write(file, f"basic_auth_users: {{alice: {hashed('secret')}}}")
        return file

    def test_only_who_knows_the_password_reads(self, tmp_path: Path, file: Path) -> None:
        with served(tmp_path, "--web.config.file", str(file)) as service:
            for path in ("/metrics", "/", "/nothing"):
                reply = get(service, path)
                assert reply.status == 401, path
                assert reply.headers["www-authenticate"].startswith('Basic realm="gpuwatch"')
                assert b"tiny" not in reply.body
            assert get(service, **authorized("alice", "wrong")).status == 401
            for _ in range(2):  # hashed, then from memory
                reply = get(service, **authorized("alice", "secret"))
                assert (reply.status, b"tiny_ratio" in reply.body) == (200, True)
            assert get(service, "/nothing", **authorized("alice", "secret")).status == 404

    def test_scrapes_are_counted_whether_the_password_was_hashed_or_remembered(
        self, tmp_path: Path, file: Path
    ) -> None:
        with served(tmp_path, "--web.config.file", str(file)) as service:
            get(service)
            for _ in range(3):
                get(service, **authorized("alice", "secret"))
            text = service.service.metrics.text(0)
            assert 'scrapes_total{exporter="tiny",code="200"} 3\n' in text
            assert 'scrapes_total{exporter="tiny",code="401"} 1\n' in text

    def test_health_needs_none(self, tmp_path: Path, file: Path) -> None:
        with served(tmp_path, "--web.config.file", str(file)) as service:
            assert (get(service, "/-/healthy").status, get(service, "/-/ready").status) == (200, 200)

    def test_who_knows_it_may_act_from_anywhere_and_nobody_else_even_on_loopback(
        self, tmp_path: Path, file: Path
    ) -> None:
        for listen in ("127.0.0.1:0", ":0"):
            with served(tmp_path, "--web.config.file", str(file), "--listen", listen) as service:
                assert get(service, "/-/release", "POST").status == 401
                assert service.exporter.state == "collecting"
                assert get(service, "/-/release", "POST", **authorized("alice", "secret")).status == 200
                assert service.exporter.state == "released"

    @pytest.mark.usefixtures("eager")
    def test_a_user_taken_out_of_the_file_is_refused_on_an_open_connection(self, tmp_path: Path, file: Path) -> None:
        header = authorized("alice", "secret")["Authorization"]
        request = f"GET /metrics HTTP/1.1\r\nAuthorization: {header}\r\n\r\n".encode()
        with served(tmp_path, "--web.config.file", str(file)) as service, connected(service.port) as sock:
            sock.sendall(request)
            assert read_reply(sock).status == 200
            write(file, f"basic_auth_users: {{bob: {hashed('other')}}}")
            sock.sendall(request)
            assert read_reply(sock).status == 401
            assert ended(sock)
            assert get(service, **authorized("bob", "other")).status == 200

    @pytest.mark.usefixtures("eager")
    def test_a_broken_new_file_is_counted_and_the_old_one_holds(
        self, tmp_path: Path, file: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with served(tmp_path, "--web.config.file", str(file)) as service:
            write(file, "basic_auth_user: {}")
            for _ in range(3):
                assert get(service).status == 401
                assert get(service, **authorized("alice", "secret")).status == 200
            text = service.service.metrics.text(0)
            assert 'web_config_reloads_total{exporter="tiny",result="failure"} 1\n' in text
            assert 'web_config_reloads_total{exporter="tiny",result="success"} 1\n' in text
            assert caplog.text.count("the old one holds") == 1
            file.unlink()
            assert get(service, **authorized("alice", "secret")).status == 200
            write(file, f"basic_auth_users: {{alice: {hashed('newer')}}}")
            assert get(service, **authorized("alice", "secret")).status == 401
            assert get(service, **authorized("alice", "newer")).status == 200

    def test_a_change_is_seen_within_seconds_without_being_told(self, tmp_path: Path, file: Path) -> None:
        with served(tmp_path, "--web.config.file", str(file)) as service:
            write(file, f"basic_auth_users: {{bob: {hashed('other')}}}")
            wait_for("bob", lambda: get(service, **authorized("bob", "other")).status == 200, seconds=5, every=0.1)


def test_the_first_file_has_to_be_right(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"), served(tmp_path, "--web.config.file", "/none.yml"):
        pass
    (tmp_path / "web.yml").write_text("tls_server_config: {cert_file: none.crt, key_file: none.key}")
    with (
        pytest.raises(SettingsError, match=r"none\.crt"),
        served(tmp_path, "--web.config.file", str(tmp_path / "web.yml")),
    ):
        pass  # fmt: skip


def test_headers_and_limits_of_the_file_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "web.yml"
    file.write_text("http_server_config: {headers: {X-Frame-Options: deny}}\nrate_limit: {interval: 1h, burst: 2}")
    with served(tmp_path, "--web.config.file", str(file)) as service:
        replies = [get(service) for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 200, 429]
        assert all(reply.headers["x-frame-options"] == "deny" for reply in replies)
        assert get(service, "/-/healthy").status == 200  # whoever restarts the process is not limited


class TestTls:
    @pytest.fixture
    def folder(self, tmp_path: Path, authority: Authority) -> Path:
        """A folder with the server's pair in tls.crt and tls.key and the authority in ca.crt."""
        self.install(tmp_path, authority.sign("server"))
        (tmp_path / "ca.crt").write_bytes(authority.cert.read_bytes())
        return tmp_path

    @staticmethod
    def install(folder: Path, pair: Pair) -> None:
        write(folder / "tls.key", pair.key.read_text())
        write(folder / "tls.crt", pair.cert.read_text())

    @staticmethod
    def config(folder: Path, more: str = "", rest: str = "") -> tuple[str, str]:
        file = folder / "web.yml"
        write(file, f"tls_server_config: {{cert_file: tls.crt, key_file: tls.key{more}}}\n{rest}")
        return ("--web.config.file", str(file))

    @staticmethod
    def get(
        service: Served, authority: Authority, pair: Pair | None = None, method: str = "GET", path: str = "/metrics",
        version: ssl.TLSVersion | None = None,
    ) -> tuple[int, bytes]:  # fmt: skip
        context = ssl.create_default_context(cafile=authority.cert)
        if pair is not None:
            context.load_cert_chain(pair.cert, pair.key)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        connection = http.client.HTTPSConnection("127.0.0.1", service.port, context=context, timeout=10)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_a_page_over_tls(self, folder: Path, authority: Authority, version: ssl.TLSVersion) -> None:
        with served(folder, *self.config(folder)) as service:
            status, body = self.get(service, authority, version=version)
            assert (status, b"tiny_ratio" in body) == (200, True)

    def test_a_large_page_over_tls_arrives_whole(self, folder: Path, authority: Authority) -> None:
        lines = "".join(f'big{{n="{number}"}} 1\n' for number in range(200_000))
        with served(folder, *self.config(folder), first=lines) as service:
            assert lines.encode() in self.get(service, authority)[1]

    def test_plain_http_is_refused_on_a_tls_port_and_others_are_served(
        self, folder: Path, authority: Authority
    ) -> None:
        with served(folder, *self.config(folder)) as service, connected(service.port) as mute:
            with connected(service.port) as sock:
                sock.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
                assert b"HTTP" not in everything(sock)  # at most an alert
            assert self.get(service, authority)[0] == 200
            mute.close()

    def test_the_versions_of_the_file_are_kept(self, folder: Path, authority: Authority) -> None:
        with served(folder, *self.config(folder, ", min_version: TLS13")) as service:
            assert self.get(service, authority)[0] == 200
            with pytest.raises(ssl.SSLError):
                self.get(service, authority, version=ssl.TLSVersion.TLSv1_2)

    def test_the_suites_and_the_curve_of_the_file_are_kept(self, folder: Path, authority: Authority) -> None:
        more = (
            ", max_version: TLS12, cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384], "
            "curve_preferences: [CurveP384]"
        )
        with served(folder, *self.config(folder, more)) as service:
            context = ssl.create_default_context(cafile=authority.cert)
            with connected(service.port) as sock, context.wrap_socket(sock, server_hostname="127.0.0.1") as tls:
                assert tls.cipher() == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2", 256)

    def test_a_client_without_a_certificate_is_sent_away(
        self, folder: Path, authority: Authority, client: Pair, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        stranger = Authority(tmp_path_factory.mktemp("stranger"), "stranger").sign("client")
        more = ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt"
        with served(folder, *self.config(folder, more)) as service:
            assert self.get(service, authority, client)[0] == 200
            for pair in (None, stranger):
                with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
                    self.get(service, authority, pair)

    @pytest.mark.parametrize(("san", "let_in"), [("prometheus.example", True), ("other.example", False)])
    def test_only_allowed_names_are_let_in(
        self, folder: Path, authority: Authority, client: Pair, san: str, let_in: bool
    ) -> None:
        more = (
            ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt, "
            f"client_allowed_sans: [spiffe://x, {san}]"
        )
        with served(folder, *self.config(folder, more)) as service:
            if let_in:
                assert self.get(service, authority, client)[0] == 200
            else:
                with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
                    self.get(service, authority, client)

    def test_a_certificate_lets_its_owner_act_and_reading_needs_none_where_it_is_optional(
        self, folder: Path, authority: Authority, client: Pair
    ) -> None:
        more = ", client_auth_type: VerifyClientCertIfGiven, client_ca_file: ca.crt"
        with served(folder, *self.config(folder, more), "--listen", ":0") as service:
            assert self.get(service, authority)[0] == 200
            assert self.get(service, authority, None, "POST", "/-/release")[0] == 403
            assert self.get(service, authority, client, "POST", "/-/release") == (200, b"released\n")

    @pytest.mark.usefixtures("eager")
    def test_a_renewed_certificate_is_shown_without_a_restart_also_when_the_key_comes_first(
        self, folder: Path, authority: Authority
    ) -> None:
        with served(folder, *self.config(folder)) as service:
            before = ssl.get_server_certificate(("127.0.0.1", service.port))
            renewed = authority.sign("renewed")
            write(folder / "tls.key", renewed.key.read_text())
            assert ssl.get_server_certificate(("127.0.0.1", service.port)) == before
            write(folder / "tls.crt", renewed.cert.read_text())
            after = ssl.get_server_certificate(("127.0.0.1", service.port))
            assert after.strip() == renewed.cert.read_text().strip()
            assert self.get(service, authority)[0] == 200

    @pytest.mark.usefixtures("eager")
    def test_tls_is_not_taken_away_from_a_running_service(self, folder: Path, authority: Authority) -> None:
        with served(folder, *self.config(folder)) as service:
            write(folder / "web.yml", "{}")
            assert self.get(service, authority)[0] == 200
            assert 'result="failure"} 1\n' in service.service.metrics.text(0)

    def test_pem_in_the_file_itself_and_a_password_over_tls(self, folder: Path, authority: Authority) -> None:
        pair = authority.sign("inline")

        def block(path: Path) -> str:
            return "".join(f"    {line}\n" for line in path.read_text().splitlines())

        (folder / "web.yml").write_text(
            f"tls_server_config:\n  cert: |\n{block(pair.cert)}  key: |\n{block(pair.key)}"
            f"basic_auth_users: {{alice: {hashed('secret')}}}\n"
        )
        with served(folder, "--web.config.file", str(folder / "web.yml")) as service:
            assert self.get(service, authority)[0] == 401
            assert self.get(service, authority, path="/-/healthy")[0] == 200

    def test_a_key_of_another_certificate_is_told(self, folder: Path, authority: Authority) -> None:
        write(folder / "tls.key", authority.sign("other").key.read_text())
        with pytest.raises(SettingsError, match="key values mismatch"), served(folder, *self.config(folder)):
            pass

    def test_two_handshakes_that_stop_half_way_hold_up_nobody(self, folder: Path, authority: Authority) -> None:
        with served(folder, *self.config(folder)) as service:
            with connected(service.port) as silent, connected(service.port) as half:
                half.sendall(b"\x16\x03\x01")
                assert self.get(service, authority)[0] == 200
                silent.close()
            assert self.get(service, authority)[0] == 200


def test_ready_comes_over_http_when_there_is_a_page(tmp_path: Path) -> None:
    file = tmp_path / "web.yml"
    file.write_text("")
    with served(tmp_path, "--web.config.file", str(file)) as service:
        wait_for("ready", lambda: get(service, "/-/ready").status == 200, every=SOON)
