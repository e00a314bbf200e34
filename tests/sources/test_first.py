"""Several doors: the first whole answer is used and every failure before it is told."""

from __future__ import annotations

from gpuwatch.errors import SourceError
from gpuwatch.sources.first import read_first
from tests.builders import NOW, a_snapshot


class Door:
    def __init__(self, name, fault=None):
        self.name, self.fault = name, fault

    def read(self, now):
        if self.fault:
            raise self.fault
        return a_snapshot(cluster=self.name)


def test_the_first_whole_answer_is_used():
    bad, good, spare = Door("a:1", SourceError("down", code="timeout")), Door("b:1"), Door("c:1")
    answer = read_first([bad, good, spare], NOW)
    assert answer.source is good
    assert answer.snapshot.cluster == "b:1"
    assert [(h.name, h.kind, h.ok, h.cause) for h in answer.health] == [
        ("a:1", "a", False, "timeout"),
        ("b:1", "b", True, None),
    ]


def test_when_none_answers_the_first_cause_is_kept():
    fault = SourceError("down", code="timeout")
    answer = read_first([Door("a:1", fault), Door("b:1", OSError("x"))], NOW)
    assert answer.snapshot is None
    assert answer.error is fault
    assert answer.health[1].cause == "OSError"


def test_no_door_is_no_answer():
    assert read_first([], NOW).snapshot is None
