"""One unary gRPC call over a unix socket: gRPC's few bytes around a message, and its status, on top of HTTP/2.

A connection lives for one call: there is nothing that goes stale when the kubelet restarts, no descriptor held in
between and no thread.
"""

from __future__ import annotations

import socket
import time

from gpuwatch_exporters.holders.holding import LookError, SourceOffError

_EMPTY_MESSAGE = bytes(5)  # not compressed, 0 bytes long
_STATUS_NAMES = {
    1: "cancelled", 2: "unknown", 4: "timeout", 5: "not_found", 7: "denied", 8: "exhausted", 12: "unimplemented",
    13: "internal", 14: "unavailable", 16: "unauthenticated",
}  # fmt: skip


def call(path: str, method: str, seconds: float, max_bytes: int) -> memoryview:
    """The answer's message to an empty message sent to `method` ("/v1.PodResourcesLister/List").

    Raises SourceOffError no_socket when there is none at `path`, not_installed without h2; LookError for everything
    else: refused, denied, timeout (the whole call takes at most `seconds`), too_large (above max_bytes), bad_answer,
    or the status of gRPC.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            return _call(sock, path, method, seconds, max_bytes)
        except FileNotFoundError:
            raise SourceOffError("no_socket") from None
        except PermissionError:
            raise LookError("denied", f"{path} may not be opened by this user") from None
        except TimeoutError:
            raise LookError("timeout", f"{path} did not answer within {seconds:g} s") from None
        except ConnectionRefusedError:
            raise LookError("refused", f"nobody listens on {path}") from None
        except OSError as err:
            raise LookError("unavailable", f"{path}: {err}") from None


def _call(sock: socket.socket, path: str, method: str, seconds: float, max_bytes: int) -> memoryview:
    if seconds <= 0:
        raise TimeoutError
    until = time.monotonic() + seconds
    sock.settimeout(seconds)
    sock.connect(path)
    try:  # only now: most nodes have no kubelet
        from gpuwatch_exporters.holders.podresources.http2 import Exchange
    except ModuleNotFoundError as err:
        raise SourceOffError(
            "not_installed",
            f"a kubelet is here, and {err.name} is not installed: pip install 'gpuwatch-stack[exporter]'",
        ) from None
    headers = [
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", method.encode()), (b":authority", b"localhost"),
        (b"te", b"trailers"), (b"content-type", b"application/grpc"),
        (b"grpc-timeout", b"%dm" % max(int(seconds * 1000), 1)),
    ]  # fmt: skip
    answer = Exchange(sock, until, max_bytes).ask(headers, _EMPTY_MESSAGE)
    return _message(answer.body, answer.headers.get(b"grpc-status", b""))


def _message(body: bytearray, status: bytes) -> memoryview:
    if status.isdigit() and int(status):
        number = int(status)
        name = _STATUS_NAMES.get(number, f"status_{number}")
        raise LookError(name, f"the kubelet answered with gRPC status {number} ({name})")
    if len(body) < 5 or len(body) != 5 + int.from_bytes(body[1:5], "big") or body[0]:
        raise LookError("bad_answer", "the answer holds no whole message")
    return memoryview(body)[5:]
