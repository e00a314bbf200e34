"""The web configuration file as values: strict reading, each fault with its line and key.

The format is that of Prometheus' exporter-toolkit (docs/web-configuration.md there). What Python's TLS cannot do is
refused by name instead of being read past.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuwatch_exporters.serving.web_config.names import AUTH_TYPES, CIPHERS, CURVES, HEADERS, UNVERIFIED, VERSIONS
from gpuwatch_exporters.serving.web_config.tree import Tree

_HASH = re.compile(r"\$2[abxy]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM text from a file or written in the configuration itself; one of the two is set."""

    file: Path | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Tls:
    """tls_server_config; `auth` is one of AUTH_TYPES, `ciphers` and `curve` in the words of OpenSSL."""

    cert: Pem
    key: Pem
    client_ca: Pem | None
    auth: str
    allowed_sans: frozenset[str]
    min_version: str
    max_version: str
    ciphers: tuple[str, ...]
    prefer_server_ciphers: bool
    curve: str | None


@dataclass(frozen=True, slots=True)
class WebConfig:
    """The whole file. `users`: name -> bcrypt hash; `rate`: seconds between two requests and burst, None without."""

    tls: Tls | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)
    rate: tuple[float, int] | None = None

    def files(self) -> list[Path]:
        """The files that it names."""
        held = [] if self.tls is None else [self.tls.cert, self.tls.key, self.tls.client_ca]
        return [pem.file for pem in held if pem is not None and pem.file is not None]


def read_web_config(file: Path) -> WebConfig:
    """The configuration in `file`. SettingsError names file, line and key; MissingExtraError without PyYAML."""
    root = Tree.of(file).mapping("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit")
    tls = root.get("tls_server_config")
    return WebConfig(
        tls=None if tls is None or tls.empty else _tls(tls, file.parent),
        headers=_headers(root["http_server_config"]) if "http_server_config" in root else {},
        users=_users(root["basic_auth_users"]) if "basic_auth_users" in root else {},
        rate=_rate(root["rate_limit"]) if "rate_limit" in root else None,
    )


def _tls(tree: Tree, folder: Path) -> Tls:
    held = tree.mapping(
        "cert", "cert_file", "key", "key_file", "client_ca", "client_ca_file", "client_auth_type",
        "client_allowed_sans", "min_version", "max_version", "cipher_suites", "prefer_server_cipher_suites",
        "curve_preferences",
    )  # fmt: skip
    cert, key = _pem(held, "cert", folder), _pem(held, "key", folder)
    if cert is None or key is None:
        raise tree.error("a certificate and its key are needed: cert_file and key_file")
    low, high = (
        held[name].one_of(VERSIONS, "TLS 1.0 and 1.1 are broken") if name in held else default
        for name, default in (("min_version", "TLS12"), ("max_version", "TLS13"))
    )
    if low > high:
        raise tree.error("min_version is above max_version")
    prefer = held.get("prefer_server_cipher_suites")
    return Tls(
        cert=cert,
        key=key,
        client_ca=_pem(held, "client_ca", folder),
        auth=_auth(tree, held),
        allowed_sans=frozenset(held["client_allowed_sans"].texts()) if "client_allowed_sans" in held else frozenset(),
        min_version=low,
        max_version=high,
        ciphers=_ciphers(held["cipher_suites"], low) if "cipher_suites" in held else (),
        prefer_server_ciphers=True if prefer is None else prefer.switch(),
        curve=_curve(held["curve_preferences"]) if "curve_preferences" in held else None,
    )


def _pem(held: Mapping[str, Tree], name: str, folder: Path) -> Pem | None:
    inline, named = held.get(name), held.get(f"{name}_file")
    if inline is not None and named is not None:
        raise inline.error(f"{name} and {name}_file are both set")
    if inline is not None and inline.text():
        return Pem(None, inline.text())
    # A relative path starts at the configuration file, so that the folder can be moved as a whole.
    return Pem(folder / named.text(), None) if named is not None and named.text() else None


def _auth(tree: Tree, held: Mapping[str, Tree]) -> str:
    if "client_auth_type" not in held:
        auth = "NoClientCert"
    elif held["client_auth_type"].text() in UNVERIFIED:
        raise held["client_auth_type"].error(
            "would let in any certificate without looking who signed it; RequireAndVerifyClientCert does look"
        )
    else:
        auth = held["client_auth_type"].one_of(AUTH_TYPES)
    has_ca = "client_ca" in held or "client_ca_file" in held
    if has_ca and auth == "NoClientCert":
        raise tree.error("client_ca_file is set, and client_auth_type does not ask for certificates")
    if not has_ca and auth != "NoClientCert":
        raise tree.error(f"client_auth_type {auth} needs client_ca_file")
    if "client_allowed_sans" in held and auth != "RequireAndVerifyClientCert":
        raise held["client_allowed_sans"].error("needs client_auth_type RequireAndVerifyClientCert")
    return auth


def _ciphers(tree: Tree, low: str) -> tuple[str, ...]:
    names = tree.names_among(CIPHERS, "not one of the suites that Go calls secure")
    found = tuple(CIPHERS[name] for name in names if CIPHERS[name])  # those of TLS 1.3 are always on, in Go too
    if names and not found and low != "TLS13":
        raise tree.error("holds suites of TLS 1.3 only: set min_version: TLS13")
    return found


def _curve(tree: Tree) -> str | None:
    names = tree.names_among(CURVES, "not a curve known here")
    if len(names) > 1:
        raise tree.error("only one curve can be set in this exporter; leave it out for the usual ones")
    return CURVES[names[0]] if names else None


def _headers(tree: Tree) -> dict[str, str]:
    held = tree.mapping("http2", "headers")
    if "http2" in held:
        held["http2"].switch()  # HTTP/1.1 is all that is spoken here, and what is offered
    found = held["headers"].mapping(*HEADERS) if "headers" in held else {}
    out = {name: each.text() for name, each in found.items() if each.text()}
    for name, text in out.items():
        allowed = HEADERS[name]
        if allowed and text.lower() not in allowed:
            raise found[name].error(f"{text!r} is none of {', '.join(allowed)}")
        if not text.isprintable() or not text.isascii():
            raise found[name].error("holds a character that no header can carry")
    return out


def _users(tree: Tree) -> dict[str, str]:
    users = {name: each.text() for name, each in tree.mapping().items()}
    for name, text in users.items():
        if not _HASH.fullmatch(text):  # never with the text itself: it may be the password
            raise tree.error(f"the password of {name!r} is no bcrypt hash: make one with htpasswd -nBC 10 {name}")
        if not name or ":" in name:
            raise tree.error(f"{name!r} is no user name")
    return users


def _rate(tree: Tree) -> tuple[float, int] | None:
    held = tree.mapping("interval", "burst")
    told = held["interval"].text() if "interval" in held else "0"
    found = _DURATION.fullmatch(told)
    if told != "0" and (not told or found is None):
        raise held["interval"].error(f"{told!r} is no duration, for example 1s or 500ms")
    parts = (0, 0, 0, 0) if told == "0" or found is None else tuple(float(part or 0) for part in found.groups())
    interval = parts[0] * 3600 + parts[1] * 60 + parts[2] + parts[3] / 1000
    burst = held["burst"].text() if "burst" in held else "1"
    if not burst.isdecimal() or int(burst) < 1:
        raise held["burst"].error(f"{burst!r} is no count from 1 up")
    return (interval, int(burst)) if interval > 0 else None
