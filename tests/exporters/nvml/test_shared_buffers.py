"""Functions of nvidia-ml-py that keep one buffer for all callers are not used: two threads would overwrite it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import gpuwatch_exporters.nvml
import pynvml as nv

PLAIN = (int, float, str, bytes, type(None))


def shared() -> set[str]:
    """Names of the functions that have a buffer as a default argument."""
    functions = [each for each in vars(nv).items() if inspect.isfunction(each[1])]
    return {name for name, each in functions if any(not isinstance(told, PLAIN) for told in each.__defaults__ or ())}


def test_no_function_with_a_shared_buffer_is_used() -> None:
    assert "nvmlDeviceGetDynamicPstatesInfo" in shared()
    sources = sorted(Path(gpuwatch_exporters.nvml.__file__).parent.rglob("*.py"))
    for path in sources:
        words = {
            node.attr if isinstance(node, ast.Attribute) else node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute | ast.Constant)
        }
        assert not words & shared(), path.name
