"""The listening socket."""

from __future__ import annotations

import socket

from gpuwatch.errors import GpuwatchError
from gpuwatch_exporters.serving.options import Listen

_BACKLOG = 256


def listen(where: Listen) -> socket.socket:
    """A socket that listens there. An empty host takes every address, of IPv6 too where the machine has it.
    GpuwatchError (code "listen") when the address is taken, not allowed or not of this machine."""
    last: OSError | None = None
    for family, address in _candidates(where):
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # "" and "::" take IPv4 along.
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address[0] != "::"))
            sock.bind(address)
            sock.listen(_BACKLOG)
            return sock
        except OSError as err:
            sock.close()
            last = err
    told = "no such host" if last is None else last.strerror or str(last)
    raise GpuwatchError(
        f"cannot listen on {where.told()}: {told}",
        todo="name another address with --listen, for example --listen :9439",
        code="listen",
    )


def _candidates(where: Listen) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    if not where.host:
        found = [(socket.AF_INET, ("0.0.0.0", where.port))]
        return [(socket.AF_INET6, ("::", where.port)), *found] if socket.has_ipv6 else found
    try:
        kinds = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return []
    return [(family, (str(address[0]), int(address[1]))) for family, _, _, _, address in kinds]


def is_loopback(sock: socket.socket) -> bool:
    """Whether only this machine can connect to the listening socket."""
    host = str(sock.getsockname()[0])
    return host == "::1" or host.removeprefix("::ffff:").startswith("127.")


def told_address(sock: socket.socket) -> str:
    """HOST:PORT, with the port that was really taken."""
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
