"""All runs of one experiment: what is known already is taken over, the rest is run, the order is the asker's."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

from gpuwatch.experiment.journal import Journal
from gpuwatch.experiment.task import Cell, Task
from gpuwatch.experiment.workers import Done

Workers = Callable[[Sequence[Task]], Generator[Done]]


def run_tasks(
    tasks: Sequence[Task],
    workers: Workers,
    journal: Journal | None = None,
    told: Callable[[int], None] = lambda done: None,
) -> list[Any]:
    """The result of each task, in the order of `tasks`. `told` hears how many are done, those known before included.

    An interrupt or a fault of one run ends the others; what was finished by then is in the journal.
    """
    results: dict[Cell, Any] = dict(journal.known) if journal else {}
    missing = [task for task in tasks if task.cell not in results]
    told(len(results))
    with closing(workers(missing)) as finished:
        for at, result in finished:
            if journal is not None:
                journal.add(missing[at], result)
            results[missing[at].cell] = result
            told(len(results))
    return [results[task.cell] for task in tasks]
