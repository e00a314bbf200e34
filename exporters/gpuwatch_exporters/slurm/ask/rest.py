"""slurmrestd, over a Unix socket or HTTP. The newest version that it offers is asked."""

from __future__ import annotations

import http.client
import os
import re
import socket
import ssl
import time
from pathlib import Path
from typing import ClassVar

from gpuwatch.errors import SettingsError
from gpuwatch_exporters.slurm.ask.address import UnixConnection, address, fits_a_header
from gpuwatch_exporters.slurm.ask.errors import CallError, told_reason
from gpuwatch_exporters.slurm.ask.process import MOST_BYTES
from gpuwatch_exporters.slurm.ask.source import Answer
from gpuwatch_exporters.slurm.read.document import Document

TOKEN_VARIABLE = "SLURM_JWT"
_DESCRIPTION = "/openapi/v3"
_PATHS = re.compile(r'"(/slurm/(v\d+\.\d+\.\d+)/(nodes|jobs|partitions|reservations)/?)"')
_CHUNK = 2**18


class Rest:
    """Asks slurmrestd at `url`: unix:/path, http://host:port or https://host:port.

    The token is read anew for each call, from `token_file` or the environment: tokens expire and are replaced.
    """

    name: ClassVar[str] = "slurmrestd"

    def __init__(self, url: str, *, token_file: Path | None = None, user: str = "", version: str = "") -> None:
        self._url = url
        self._parts = address(url)
        if not fits_a_header(user):
            raise SettingsError(f"{user!r} is no name of a user", todo="see --rest-user")
        self._prefix = "" if self._parts.scheme == "unix" else self._parts.path.rstrip("/")
        self._token_file = token_file
        self._user = user
        self._version = version
        self._paths: dict[str, str] = {}

    def ask(self, call: str, timeout_seconds: float) -> Answer:
        deadline = time.monotonic() + timeout_seconds
        if not self._paths:
            self._paths = self._offered(deadline)
        try:
            return Document(self._get(self._paths[call], deadline))
        except KeyError:
            raise CallError(f"slurmrestd at {self._url} offers no {call}", code="bad_answer") from None
        except CallError as err:
            if err.code == "http_status":
                self._paths = {}  # it may have been replaced by one of another version
            raise

    def cluster(self, timeout_seconds: float) -> str:
        return ""  # told by the answers themselves

    def told(self) -> str:
        return f"asks slurmrestd at {self._url}"

    def close(self) -> None:
        return

    def _offered(self, deadline: float) -> dict[str, str]:
        """Path by call, in the version asked for or the newest offered."""
        text = self._get(_DESCRIPTION, deadline).replace("\\/", "/")
        found = [(tuple(map(int, version[1:].split("."))), call, path) for path, version, call in _PATHS.findall(text)]
        if self._version:
            found = [each for each in found if "v" + ".".join(map(str, each[0])) == self._version]
        if not found:
            raise CallError(
                f"slurmrestd at {self._url} offers no {self._version or 'version of its Slurm plugin'}",
                todo="see its option -s, or --rest-version",
                code="bad_answer",
            )
        newest = max(version for version, _, _ in found)
        return {call: path for version, call, path in found if version == newest}

    def _get(self, path: str, deadline: float) -> str:
        connection = self._connection(deadline)
        try:
            connection.connect()
            connected = connection.sock  # the connection itself may let go of it before the body is read
            connection.request("GET", self._prefix + path, headers=self._headers())
            answer = connection.getresponse()
            body = self._body(answer, connected, deadline)
        except TimeoutError as err:
            raise _late(self._url) from err
        except (OSError, http.client.HTTPException) as err:
            raise CallError(f"slurmrestd at {self._url}: {err}", code="unreachable") from err
        finally:
            connection.close()
        if answer.status != 200:
            raise CallError(
                f"slurmrestd at {self._url} answered {answer.status} to {path}: {' '.join(body[:300].split())}",
                code="not_allowed" if answer.status in (401, 403) else told_reason(body, "http_status"),
            )
        return body

    def _body(self, answer: http.client.HTTPResponse, connected: socket.socket, deadline: float) -> str:
        held = bytearray()
        while True:  # a server that sends drop by drop, or stops half way, meets the deadline here
            left = deadline - time.monotonic()
            if left <= 0:
                raise _late(self._url)
            connected.settimeout(left)
            chunk = answer.read1(_CHUNK)
            if not chunk:
                break
            held += chunk
            if len(held) > MOST_BYTES:
                raise CallError(f"slurmrestd at {self._url} sent more than {MOST_BYTES >> 20} MiB", code="too_large")
        return held.decode("utf-8", "replace")

    def _headers(self) -> dict[str, str]:
        token = os.environ.get(TOKEN_VARIABLE, "")
        if self._token_file:
            try:
                token = self._token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as err:
                raise CallError(f"cannot read the token in {self._token_file}: {err}", code="not_allowed") from err
        token = token.removeprefix(f"{TOKEN_VARIABLE}=").strip()  # as `scontrol token` prints it
        if not fits_a_header(token):
            raise CallError(
                f"what is in {self._token_file or TOKEN_VARIABLE} is no token", todo="one line of ASCII",
                code="not_allowed",
            )  # fmt: skip
        out = {"Accept": "application/json"}
        if token:
            out["X-SLURM-USER-TOKEN"] = token
        if self._user:
            out["X-SLURM-USER-NAME"] = self._user
        return out

    def _connection(self, deadline: float) -> http.client.HTTPConnection:
        left = deadline - time.monotonic()
        if left <= 0:
            raise _late(self._url)
        host, port = self._parts.hostname or "localhost", self._parts.port
        if self._parts.scheme == "unix":
            return UnixConnection(self._parts.path, left)
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=left, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=left)


def _late(url: str) -> CallError:
    return CallError(f"slurmrestd at {url} did not answer in time", todo="raise --timeout?", code="timeout")
