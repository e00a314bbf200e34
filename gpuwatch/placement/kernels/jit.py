"""Compiles the scalar kernels on first use. Nothing here imports numba until then."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_PARTS: list[Callable[..., Any]] = []


def kernel(function: F) -> F:
    """Marks a plain function that compiled kernels may call. It stays plain Python for everybody else."""
    _PARTS.append(function)
    return function


@cache
def lacking() -> str:
    """Why nothing can be compiled; "" where numba works. One that does not suit the NumPy installed fails on import."""
    if find_spec("numba") is None:
        return "numba is not installed"
    try:
        import numba  # noqa: F401
    except ImportError as err:
        return f"numba does not load ({str(err).splitlines()[0] if str(err) else type(err).__name__})"
    return ""


def available() -> bool:
    """Whether kernels can be compiled."""
    return not lacking()


def switched_off() -> bool:
    """Whether the environment tells numba to compile nothing (NUMBA_DISABLE_JIT). It may change within a process."""
    import numba

    config: Any = numba.config
    config.reload_config()
    return bool(config.DISABLE_JIT)


def compiled(function: Callable[..., Any], signature: Any = None) -> Callable[..., Any]:
    """`function` compiled; the functions that it calls must be marked with `kernel`. None of them may allocate.

    signature: numba's, to compile for exactly these types and at once; without it types are those of each call.
    Counting references to each array of a state at each call costs several hundred times the work itself, so it is
    switched off; that is what forbids allocation. Where numba is switched off, it is `function` itself.
    """
    return function if switched_off() else _compiled(function, signature)


@cache
def _compiled(function: Callable[..., Any], signature: Any) -> Callable[..., Any]:
    import numba
    from numba.extending import register_jitable

    while _PARTS:
        register_jitable(_nrt=False)(_PARTS.pop(0))
    # The stubs do not know the switch.
    made: Callable[..., Any] = numba.njit(signature, _nrt=False)(function)  # type: ignore[call-overload]
    return made
