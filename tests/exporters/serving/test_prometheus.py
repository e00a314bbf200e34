"""A real Prometheus scrapes the service over TLS, with a client certificate and a password."""

from __future__ import annotations

from pathlib import Path

import bcrypt
import pytest

from tests.exporters.serving.certificates import Authority
from tests.exporters.serving.harness import served
from tests.servers import prometheus

pytestmark = pytest.mark.server


def test_prometheus_reads_values_and_what_the_exporter_tells_of_itself(tmp_path: Path, prometheus_program: str) -> None:
    authority = Authority(tmp_path)
    server, client = authority.sign("server"), authority.sign("client")
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    web = tmp_path / "web.yml"
    web.write_text(
        f"tls_server_config: {{cert_file: {server.cert}, key_file: {server.key}, client_ca_file: {authority.cert}, "
        f"client_auth_type: RequireAndVerifyClientCert}}\nbasic_auth_users: {{alice: {hashed}}}\n"
    )
    with served(tmp_path, "--web.config.file", str(web)) as service:
        job = {
            "job_name": "tiny",
            "scheme": "https",
            "tls_config": {"ca_file": str(authority.cert), "cert_file": str(client.cert), "key_file": str(client.key)},
            "basic_auth": {"username": "alice", "password": "secret"},
            "static_configs": [{"targets": [f"127.0.0.1:{service.port}"]}],
        }
        with prometheus(prometheus_program, tmp_path / "prometheus", {"scrape_configs": [job]}) as server_:
            [series] = server_.wait_for('tiny_ratio{job="tiny"}')
            assert series["value"][1] == "0.5"
            assert server_.number('up{job="tiny"}') == 1
            assert server_.wait_for('gpuwatch_exporter_scrapes_total{code="200"} >= 2')
            # One handshake and one hash: the connection is kept from scrape to scrape.
            assert len(service.service._server._connections) == 1  # type: ignore[union-attr]
            assert server_.number('gpuwatch_exporter_scrapes_total{code="401"}') is None
