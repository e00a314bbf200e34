"""How much of the machine clients may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds. A connection beyond the number ends one that idles or does not ask,
    or is turned away."""

    connections: int = 512
    request: float = 5.0  # from the first byte of a request, or the connection's beginning, to the end of its head
    answer: float = 20.0  # to take a whole answer
    linger: float = 1.0  # to go on sending after an answer that ends the connection
    idle: float = 150.0  # between two requests: longer than the usual time between two scrapes
    sweep: float = 1.0  # how often the times are looked at
