"""The web configuration file: every setting, and every fault with its line and key."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpuwatch_exporters.serving.web_config.document import Pem, WebConfig, read_web_config

from gpuwatch.errors import SettingsError

HASH = "$2y$10$" + "a" * 53


def read(folder: Path, text: str) -> WebConfig:
    file = folder / "web.yml"
    file.write_text(text)
    return read_web_config(file)


def test_a_whole_file(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        f"""
tls_server_config:
  cert_file: tls.crt
  key_file: /etc/tls.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus.example, 10.0.0.1]
  min_version: TLS13
  max_version: TLS13
  cipher_suites: [TLS_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: false
  curve_preferences: [CurveP256]
http_server_config:
  http2: true
  headers: {{X-Frame-Options: deny, Strict-Transport-Security: max-age=60, X-XSS-Protection: ''}}
basic_auth_users:
  alice: {HASH}
  123: {HASH}
rate_limit: {{interval: 500ms, burst: 5}}
""",
    )
    tls = config.tls
    assert tls is not None
    assert (tls.cert, tls.key) == (Pem(tmp_path / "tls.crt", None), Pem(Path("/etc/tls.key"), None))
    assert tls.client_ca == Pem(tmp_path / "ca.crt", None)
    assert tls.allowed_sans == {"prometheus.example", "10.0.0.1"}
    assert (tls.min_version, tls.max_version, tls.ciphers, tls.curve) == ("TLS13", "TLS13", (), "prime256v1")
    assert not tls.prefer_server_ciphers
    assert config.headers == {"X-Frame-Options": "deny", "Strict-Transport-Security": "max-age=60"}
    assert config.users == {"alice": HASH, "123": HASH}
    assert config.rate == (0.5, 5)
    assert config.files() == [tmp_path / "tls.crt", Path("/etc/tls.key"), tmp_path / "ca.crt"]


@pytest.mark.parametrize("text", ["", "{}", "tls_server_config:\n", "tls_server_config: {}\nbasic_auth_users:\n"])
def test_an_empty_file_asks_for_nothing(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == WebConfig()


def test_suites_are_named_as_openssl_names_them(tmp_path: Path) -> None:
    names = "TLS_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    tls = read(tmp_path, f"tls_server_config: {{cert_file: a, key_file: b, cipher_suites: [{names}]}}").tls
    assert tls is not None
    assert tls.ciphers == ("ECDHE-RSA-AES128-GCM-SHA256",)


def test_pem_may_stand_in_the_file_itself(tmp_path: Path) -> None:
    tls = read(tmp_path, "tls_server_config:\n  cert: |\n    CERT\n  key: KEY\n").tls
    assert tls is not None
    assert (tls.cert, tls.key) == (Pem(None, "CERT\n"), Pem(None, "KEY"))


PAIR = "cert_file: a, key_file: b"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tls_config:\n", "line 1: tls_config: no such setting"),
        ("\n\nbasic_auth: {}\n", "line 3: basic_auth: no such setting"),
        ("tls_server_config:\n  cert_file: a\n  keyfile: b\n", "line 3: tls_server_config.keyfile: no such setting"),
        ("tls_server_config: {cert_file: a}", "its key are needed"),
        ("tls_server_config: {cert_file: a, cert: b, key_file: c}", "cert and cert_file are both set"),
        ("tls_server_config: 3", "should be a mapping"),
        ("tls_server_config: {%s, min_version: TLS10}", "'TLS10' is none of TLS12, TLS13"),
        ("tls_server_config: {%s, min_version: TLS13, max_version: TLS12}", "min_version is above"),
        ("tls_server_config: {%s, client_auth_type: RequireAnyClientCert, client_ca_file: c}", "any certificate"),
        ("tls_server_config: {%s, client_auth_type: RequestClientCert}", "any certificate"),
        ("tls_server_config: {%s, client_auth_type: Require, client_ca_file: c}", "'Require' is none of"),
        ("tls_server_config: {%s, client_auth_type: RequireAndVerifyClientCert}", "needs client_ca_file"),
        ("tls_server_config: {%s, client_ca_file: c}", "does not ask for certificates"),
        (
            "tls_server_config: {%s, client_auth_type: VerifyClientCertIfGiven, client_ca_file: c, "
            "client_allowed_sans: [x]}",
            "needs client_auth_type RequireAndVerifyClientCert",
        ),
        ("tls_server_config: {%s, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]}", "'TLS_RSA_WITH_RC4_128_SHA'"),
        ("tls_server_config: {%s, cipher_suites: [TLS_AES_128_GCM_SHA256]}", "min_version: TLS13"),
        ("tls_server_config: {%s, cipher_suites: TLS_AES_128_GCM_SHA256}", "should be a list"),
        ("tls_server_config: {%s, curve_preferences: [CurveP256, X25519]}", "only one curve"),
        ("tls_server_config: {%s, curve_preferences: [P256]}", "'P256': not a curve"),
        ("tls_server_config: {%s, prefer_server_cipher_suites: maybe}", "should be true or false"),
        ("http_server_config: {http3: true}", "http_server_config.http3"),
        ("http_server_config: {http2: yes please}", "should be true or false"),
        ("http_server_config: {headers: {Server: x}}", "http_server_config.headers.Server: no such setting"),
        ("http_server_config: {headers: {X-Frame-Options: allow}}", "'allow' is none of deny, sameorigin"),
        ('http_server_config: {headers: {X-XSS-Protection: "a\\nSet-Cookie: x"}}', "no header can carry"),
        ("basic_auth_users: {alice: secret}", "the password of 'alice' is no bcrypt hash"),
        (f"basic_auth_users: {{'a:b': {HASH}}}", "'a:b' is no user name"),
        (f"basic_auth_users:\n  a: {HASH}\n  a: {HASH}\n", "line 3: basic_auth_users.a: set twice"),
        ("rate_limit: {interval: soon}", "'soon' is no duration"),
        ("rate_limit: {interval: 1s, burst: 0}", "'0' is no count"),
        ("a: [b", "is no YAML"),
    ],
)  # fmt: skip
def test_a_fault_names_its_line_and_key(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text.replace("%s", PAIR))
    assert told in caught.value.what
    assert "web.yml" in caught.value.what


def test_no_tag_of_yaml_makes_an_object(tmp_path: Path) -> None:
    assert read(tmp_path, "tls_server_config: !!python/object:os.system {}") == WebConfig()


def test_a_password_in_clear_is_never_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, "basic_auth_users: {alice: opensesame}")
    assert "opensesame" not in "".join(caught.value.lines())


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        read_web_config(tmp_path / "none.yml")


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("1s", 1.0), ("1m30s", 90.0), ("250ms", 0.25), ("1h", 3600.0), ("0", None), ("1.5s", 1.5)],
)
def test_durations(tmp_path: Path, told: str, seconds: float | None) -> None:
    rate = read(tmp_path, f"rate_limit: {{interval: {told}, burst: 2}}").rate
    assert rate == (None if seconds is None else (seconds, 2))
