"""Device programs of cgroup v2: what they answer without a kernel, and the same as a real kernel does."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from gpuwatch_exporters.holders.slurm import programs
from gpuwatch_exporters.holders.slurm.interpreter import NotUnderstoodError, allows
from gpuwatch_exporters.holders.slurm.source import SlurmJobs
from hypothesis import given
from hypothesis import strategies as st

from tests.exporters.holders.device_programs import EXIT, HEAD, MOV64_K, answer, cgroup, op, opens, slurm, systemd
from tests.exporters.holders.frames import plain
from tests.exporters.holders.trees import Node, ordinary_user, write

DEVICES = st.tuples(st.sampled_from([1, 195, 235]), st.integers(0, 300))
MEMORY_DEVICES = {3: "/dev/null", 5: "/dev/zero", 7: "/dev/full", 8: "/dev/random", 9: "/dev/urandom"}


@given(st.dictionaries(DEVICES, st.booleans(), max_size=12), st.booleans(), DEVICES)
def test_programs_as_slurm_writes_them(
    rules: dict[tuple[int, int], bool], default: bool, asked: tuple[int, int]
) -> None:
    program = slurm(rules, default)
    for device in (asked, *rules):
        assert allows(program, *device) == rules.get(device, default)


@given(st.lists(DEVICES, max_size=12, unique=True), DEVICES)
def test_programs_of_jumps_to_one_end(allowed: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    program = systemd(allowed)
    for device in (asked, *allowed):
        assert allows(program, *device) == (device in allowed)


@pytest.mark.parametrize(
    ("code", "left", "right", "expected"),
    [
        (0x07, 2**64 - 1, 1, 0),  # a sum that wraps
        (0x04, 2**32 - 1, 1, 0),
        (0x17, 0, 1, 2**64 - 1),
        (0x27, 3, -1, 2**64 - 3),
        (0x37, 7, 2, 3),
        (0x37, 7, 0, 0),  # by zero there is nothing
        (0x97, 7, 0, 7),
        (0x97, 7, 4, 3),
        (0x47, 5, 2, 7),
        (0x57, 5, 4, 4),
        (0xA7, 5, 1, 4),
        (0x67, 1, 63, 2**63),
        (0x64, 1, 33, 2),  # shifts count modulo the width
        (0x77, 2**63, 63, 1),
        (0xC7, 2**63, 63, 2**64 - 1),
        (0xC4, 2**31, 31, 2**32 - 1),
        (0x87, 1, 0, 2**64 - 1),
        (0xB4, 0, -1, 2**32 - 1),
    ],
)
def test_sums(code: int, left: int, right: int, expected: int) -> None:
    wide = op(0x18, 1, imm=_low(left)) + op(0, imm=_low(left >> 32))
    want = op(0x18, 2, imm=_low(expected)) + op(0, imm=_low(expected >> 32))
    check = op(0x1D, 1, 2, offset=2)  # if r1 == r2 goto allowed
    assert allows(wide + op(code, 1, imm=right) + want + check + answer(False) + answer(True), 0, 0)
    assert not allows(
        wide + op(code, 1, imm=right) + want + op(0x5D, 1, 2, offset=2) + answer(False) + answer(True), 0, 0
    )


@pytest.mark.parametrize(
    ("code", "right", "jumps"),
    [
        (0x15, 5, True), (0x55, 5, False), (0x25, 4, True), (0x35, 5, True), (0x45, 4, True), (0x45, 2, False),
        (0xA5, 6, True), (0xB5, 4, False), (0x65, -1, True), (0x75, 5, True), (0xC5, -1, False), (0xD5, 5, True),
        (0xA5, -1, True), (0x16, 5, True), (0x66, -1, True), (0x05, 0, True),
    ],
)  # fmt: skip
def test_jumps(code: int, right: int, jumps: bool) -> None:
    program = op(MOV64_K, 1, imm=5) + op(code, 1, offset=2, imm=right) + answer(False) + answer(True)
    assert allows(program, 0, 0) is jumps


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(b"", id="empty"),
        pytest.param(op(MOV64_K, 0), id="no end"),
        pytest.param(op(0x05, offset=-1), id="endless"),
        pytest.param(op(0x85, imm=1) + op(EXIT), id="a call"),
        pytest.param(op(0x18, 1, source=1, imm=3) + op(0) + op(EXIT), id="a map"),
        pytest.param(op(0x61, 0, 1, 12) + op(EXIT), id="beside the question"),
        pytest.param(op(0x61, 0, 10, -8) + op(EXIT), id="a stack"),
        pytest.param(op(0x63, 10, 1, -8) + op(EXIT), id="a store"),
        pytest.param(op(MOV64_K, 11) + op(EXIT), id="no register"),
        pytest.param(op(0x05, offset=7) + op(EXIT), id="a jump out"),
        pytest.param(op(EXIT)[:5], id="half an instruction"),
        pytest.param(HEAD + op(0x3F, 2, 3, offset=1) + op(EXIT), id="a signed division"),
    ],
)
def test_what_is_not_understood_is_never_guessed(program: bytes) -> None:
    with pytest.raises(NotUnderstoodError):
        allows(program, 195, 0)


@given(st.binary(max_size=120))
def test_any_bytes_end(program: bytes) -> None:
    with suppress(NotUnderstoodError):
        allows(program, 195, 0)


@pytest.mark.server
@pytest.mark.parametrize(
    "attached",
    [
        pytest.param([slurm({(1, 5): False, (1, 8): False})], id="some denied"),
        pytest.param([slurm({(1, 3): True, (1, 5): False}, default=False)], id="one allowed"),
        pytest.param([systemd([(1, 3), (1, 5), (1, 9)])], id="a list"),
        pytest.param([slurm({(1, 5): False}), systemd([(1, 5), (1, 7)])], id="two programs"),
    ],
)
def test_the_kernel_and_we_answer_the_same(attached: list[bytes]) -> None:
    with cgroup(*attached) as folder:
        rule = programs.rule_of(folder)
        assert rule is not None
        ours = {minor: rule(1, minor) for minor in MEMORY_DEVICES}
        assert ours == {minor: opens(folder, path) for minor, path in MEMORY_DEVICES.items()}
        assert set(ours.values()) == {True, False}


@pytest.mark.server
def test_a_cgroup_without_a_program_tells_nothing() -> None:
    with cgroup() as folder:
        assert programs.rule_of(folder) is None


@pytest.mark.server
def test_an_ordinary_user_is_denied() -> None:
    with cgroup(slurm({(195, 0): False})) as folder, ordinary_user(), pytest.raises(programs.DeniedError):
        programs.rule_of(folder)


@pytest.mark.server
def test_no_descriptor_is_left() -> None:
    with cgroup(slurm({(195, 0): False})) as folder:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            assert programs.rule_of(folder) is not None
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.server
def test_a_job_whose_devices_only_the_kernel_knows(tmp_path: Path) -> None:
    """Slurm's programs of v2 deny the GPUs of others and allow the rest."""
    node = Node(tmp_path)
    rules = {(195, 0): False, (195, 1): True, (195, 2): False, (195, 3): True}
    with cgroup(slurm(rules), below="system.slice/slurmstepd.scope/job_9") as root:
        jobs = SlurmJobs(root, node.procfs, str, None, None)
        [held] = jobs.look(plain()).holdings
        assert (held.job_id, held.source, [ref.text for ref in held.refs]) == ("9", "slurm_cgroup", ["1", "3"])
        with ordinary_user():
            answer = jobs.look(plain())
        assert answer.holdings == ()
        assert answer.failures == {"device_program_denied": 1}


@pytest.mark.server
def test_a_job_with_a_program_that_is_not_understood(tmp_path: Path) -> None:
    node = Node(tmp_path)
    clock = op(0x85, imm=5) + answer(True)  # asks the kernel for the time
    with cgroup(clock, below="system.slice/slurmstepd.scope/job_9") as root:
        answered = SlurmJobs(root, node.procfs, str, None, None).look(plain())
        assert answered.holdings == ()
        assert answered.failures == {"device_program_unknown": 1}


def test_a_folder_that_is_no_cgroup(tmp_path: Path) -> None:
    assert programs.rule_of(tmp_path / "none") is None
    if os.geteuid() == 0:
        assert programs.rule_of(write(tmp_path / "a/file", "").parent) is None


def _low(value: int) -> int:
    [signed] = struct.unpack("=i", struct.pack("=I", value & 0xFFFFFFFF))
    return int(signed)
