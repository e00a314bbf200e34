"""Passwords: who is let in, what it costs, and what is remembered."""

from __future__ import annotations

import base64
import time

import bcrypt
import pytest
from gpuwatch_exporters.serving.web_config.passwords import Passwords

COST = 4  # the lowest that there is


def hashed(password: str, cost: int = COST) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def found(passwords: Passwords, header: str) -> bool:
    answer = passwords.check(header)
    return answer if isinstance(answer, bool) else answer()


@pytest.fixture(scope="module")
def alice() -> str:
    return hashed("secret")


def test_the_right_password_of_the_right_user_is_let_in(alice: str) -> None:
    passwords = Passwords({"alice": alice, "bob": hashed("other")})
    assert found(passwords, basic("alice", "secret"))
    assert found(passwords, basic("bob", "other"))
    for name, password in (("alice", "other"), ("bob", "secret"), ("carol", "secret"), ("alice", ""), ("", "secret")):
        assert not found(passwords, basic(name, password)), (name, password)


@pytest.mark.parametrize("header", ["", "Basic", "Basic !!!", "Bearer abc", "Basic YWxpY2U=", "basic", "Basic \xff"])
def test_what_is_no_basic_header_is_refused_at_once(alice: str, header: str) -> None:
    assert Passwords({"alice": alice}).check(header) is False


def test_the_scheme_is_read_in_any_case_and_a_colon_may_be_in_the_password() -> None:
    passwords = Passwords({"a": hashed("x:y")})
    assert found(passwords, basic("a", "x:y").replace("Basic", "bAsIc"))


def test_a_hash_as_htpasswd_writes_it_is_read(alice: str) -> None:
    assert found(Passwords({"alice": alice.replace("$2b$", "$2y$")}), basic("alice", "secret"))


def test_an_odd_password_is_refused_and_a_long_one_read_as_far_as_bcrypt_reads(alice: str) -> None:
    passwords = Passwords({"alice": alice, "long": hashed("p" * 72)})
    assert not found(passwords, basic("alice", "sec\0ret"))
    assert found(passwords, basic("long", "p" * 80))


def test_the_second_time_is_from_memory_for_right_and_wrong(alice: str) -> None:
    passwords = Passwords({"alice": alice})
    for password, right in (("secret", True), ("wrong", False)):
        assert callable(passwords.check(basic("alice", password)))
        assert found(passwords, basic("alice", password)) == right
        assert passwords.check(basic("alice", password)) is right


def test_guesses_are_remembered_in_bounds_and_push_out_nobody_who_is_right(alice: str) -> None:
    passwords = Passwords({"alice": alice})
    assert found(passwords, basic("alice", "secret"))
    for number in range(300):
        found(passwords, basic("alice", f"guess {number}"))
    assert passwords.check(basic("alice", "secret")) is True
    assert len(passwords._known) <= 256


def test_a_name_that_is_not_known_costs_as_much_as_one_that_is() -> None:
    passwords = Passwords({"alice": hashed("secret", 9)})

    def spent(name: str, number: int) -> float:
        began = time.thread_time()
        assert not found(passwords, basic(name, f"wrong {number}"))
        return time.thread_time() - began

    known = min(spent("alice", number) for number in range(3))
    unknown = min(spent("nobody", number) for number in range(3))
    assert known / 2 < unknown < known * 2
    assert known > 0.005  # it was computed at all


def test_a_hash_of_the_highest_cost_sets_that_of_unknown_names() -> None:
    assert b"$09$" in Passwords({"a": hashed("x"), "b": hashed("x", 9)})._nobody
