"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey
# In the order of x509.KeyUsage.
_USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip
_DAY = datetime.timedelta(days=1)


@dataclass
class Pair:
    """The PEM files of a certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates; its own is at `cert`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.cert = folder / f"{name}.crt"
        signs = x509.KeyUsage(*(name in ("key_cert_sign", "crl_sign") for name in _USAGES))
        made = self._certificate(self._name, self._key)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._write(self.cert, made.add_extension(signs, critical=True))

    def sign(self, name: str, *names: x509.GeneralName) -> Pair:
        """A pair under `name`, valid for 127.0.0.1 and `names`."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        held = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *names]
        self._write(pair.cert, self._certificate(subject, key).add_extension(x509.SubjectAlternativeName(held), False))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return pair

    def _certificate(self, subject: x509.Name, key: Key) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            # What a strict reader of certificates asks for: which key it is, and which one signed it.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def _write(self, path: Path, builder: x509.CertificateBuilder) -> None:
        path.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
