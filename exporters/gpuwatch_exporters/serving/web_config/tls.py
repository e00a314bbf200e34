"""The TLS context of a web configuration, and which client certificates are let in."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator
from typing import Any

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.serving.web_config.document import Pem, Tls

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_VERIFY = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}


def tls_context(tls: Tls) -> ssl.SSLContext:
    """The context to accept connections with. SettingsError when a file is missing, broken or of another pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = _VERSIONS[tls.min_version], _VERSIONS[tls.max_version]
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    with contextlib.ExitStack() as stack:
        cert, key = stack.enter_context(_path(tls.cert)), stack.enter_context(_path(tls.key))
        try:
            # A key that asks for a password would make OpenSSL read the terminal.
            context.load_cert_chain(cert, key, password=lambda: b"")
        except (OSError, ValueError) as err:
            raise SettingsError(
                f"certificate {_told(tls.cert)} with key {_told(tls.key)}: {_reason(err)}",
                todo="both have to be readable PEM, to belong together, and the key to be without a password",
            ) from err
    _set_ciphers(context, tls)
    context.verify_mode = _VERIFY[tls.auth]
    if tls.client_ca is not None:
        _load_ca(context, tls.client_ca)
    return context


def san_allowed(certificate: Any, allowed: frozenset[str]) -> bool:
    """Whether one of the certificate's subject alternative names (DNS, IP, e-mail, URI) is exactly one of these."""
    names = (certificate or {}).get("subjectAltName", ())
    return not allowed or any(text in allowed for _, text in names)


def _set_ciphers(context: ssl.SSLContext, tls: Tls) -> None:
    if tls.prefer_server_ciphers:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    else:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    try:
        if tls.ciphers:
            context.set_ciphers(":".join(tls.ciphers))
        if tls.curve is not None:
            context.set_ecdh_curve(tls.curve)
    except (ssl.SSLError, ValueError) as err:
        raise SettingsError(f"cipher_suites or curve_preferences: this OpenSSL does not take them: {err}") from err


def _load_ca(context: ssl.SSLContext, ca: Pem) -> None:
    try:
        context.load_verify_locations(cafile=ca.file, cadata=ca.text)
    except (OSError, ValueError) as err:
        raise SettingsError(f"client_ca {_told(ca)}: {_reason(err)}", todo="give PEM certificates") from err


@contextlib.contextmanager
def _path(pem: Pem) -> Iterator[str]:
    """A path to the PEM text. One written in the configuration is shown to OpenSSL in memory, never on a disk."""
    if pem.file is not None:
        yield str(pem.file)
        return
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, (pem.text or "").encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _told(pem: Pem) -> str:
    return str(pem.file) if pem.file is not None else "(in the configuration)"


def _reason(err: Exception) -> str:
    reason = getattr(err, "reason", None) or getattr(err, "strerror", None) or str(err)
    return str(reason).replace("_", " ").lower()
