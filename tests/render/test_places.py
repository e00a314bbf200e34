"""Nodes and devices in few words."""

from __future__ import annotations

import pytest

from gpuwatch.render.places import folded, places, ranges


@pytest.mark.parametrize(
    ("numbers", "told"), [((), ""), ((3,), "3"), ((0, 1, 2, 3, 7), "0-3,7"), ((2, 0, 2, 1), "0-2"), ((0, 2), "0,2")]
)
def test_numbers_in_a_row_are_joined(numbers, told):
    assert ranges(numbers) == told


def test_names_are_joined_by_the_number_at_their_end():
    assert folded(["n01", "n02", "n04"]) == [("n[01-02,04]", 3)]
    assert folded(["n9", "n10", "n11", "login", "n9"]) == [("n9", 1), ("n[10-11]", 2), ("login", 1)]
    assert folded(["a-1x", "a-2x"]) == [("a-1x", 1), ("a-2x", 1)]
    assert folded(["7", "08"]) == [("7", 1), ("08", 1)]


def test_nodes_with_the_same_are_told_once():
    assert places([]) == ""
    assert places([("n1", "GPU 0"), ("m", "GPU 1"), ("n2", "GPU 0")]) == "n[1-2] GPU 0 each; m GPU 1"
    assert places([("n1", ""), ("n2", "")]) == "n[1-2]"


def test_a_long_list_is_cut_and_every_node_counted():
    names = [f"{letter}x" for letter in "abcdefgh"] + ["z1", "z2", "z3", "y"]
    assert places((name, "GPU 0") for name in names) == "ax, bx, cx, dx, ex, fx, gx, hx and 4 more nodes GPU 0 each"
