"""Files written whole, and what is no plain file left standing."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from gpuwatch.files import replace_file


def test_a_pipe_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    replace_file(pipe, "whole ü\n")
    reader.join(10)
    assert got == ["whole ü\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_a_device_named_through_a_link_is_written_into(tmp_path: Path) -> None:
    link = tmp_path / "nowhere"
    link.symlink_to(os.devnull)
    replace_file(link, "lost")
    assert link.is_symlink()
    assert stat.S_ISCHR(link.stat().st_mode)


def test_a_link_keeps_standing_and_its_target_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "data" / "v1.json"
    target.parent.mkdir()
    target.write_text("old")
    link = tmp_path / "current.json"
    link.symlink_to(target)
    replace_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize(("mode", "want"), [(None, 0o640), (0o644, 0o644)])
def test_rights_are_kept_or_given(tmp_path: Path, mode: int | None, want: int) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)
    replace_file(path, "new", mode)
    assert path.stat().st_mode & 0o777 == want
