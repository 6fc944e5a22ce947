"""Budgets and clocks: nobody spends more than he was given, and what measures is nobody's."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.racing.tracks.clock import Clock, made, spend, traced, view


def scale(**more):
    return Settings({"cost": 64, "points": 4, "seconds": 1e9} | more)


@pytest.mark.parametrize("price", [1, 3, 7])
def test_a_step_that_would_exceed_the_budget_is_not_made(price):
    step = jax.jit(lambda state, target: spend(lambda s, i: (s + 1, price), state[0], state[1], state[2], target))
    state = (jnp.asarray(0), jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32))
    for target in (10, 20, 50):
        state = step(state, target)
        assert int(state[2]) == price * int(state[1]) == target // price * price


def test_one_step_is_always_made_and_told():
    found = spend(lambda s, i: (s + 1, 100), jnp.asarray(0), jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32), 10)
    assert (int(found[1]), int(found[2])) == (1, 100)


@pytest.mark.parametrize("warmup", [0, 10, 40])
def test_the_first_step_is_made_also_where_a_warm_up_has_cost_more_than_there_is(warmup):
    """So that nobody is judged untrained; then whoever is beyond a target waits for the next."""
    none = jnp.asarray(0, jnp.int32)
    step = jax.jit(lambda state, target: spend(lambda s, i: (s + 1, 4), state[0], state[1], state[2], target))
    state, seen = (jnp.asarray(0), none, jnp.asarray(warmup, jnp.int32)), []
    for target in (8, 16, 32, 64):
        state = step(state, target)
        seen.append((int(state[0]), int(state[2])))
    assert seen[0] == ((1, warmup + 4) if warmup else (2, 8))
    assert all(cost == warmup + 4 * steps for steps, cost in seen)
    assert seen[-1][1] <= 64


def test_points_double_and_end_with_the_budget():
    clock = Clock(scale())
    assert list(clock.targets()) == [8, 16, 32, 64]
    clock = Clock(scale(seconds=0.0))
    clock.seconds = 1.0
    assert list(clock.targets()) == [8]  # no further point is begun when the time is up


def test_a_run_that_is_cut_says_how_far_it_came():
    clock = Clock(scale())
    clock.note(8, loss=1.0)
    clock.note(2**31 - 1, loss=0.1)
    found = clock.record()
    assert found["cost"][:2].tolist() == [8, 2**31 - 1]  # to the last digit
    assert found["loss"][:2].tolist() == [1.0, 0.1]
    assert jnp.isnan(found["cost"][2:]).all()
    assert found["loss"].shape == (4,)


def test_a_run_that_goes_on_expects_of_the_next_step_what_the_others_cost():
    """Taken up between two targets that one step cannot bridge, it makes none."""
    state = jnp.asarray(2), jnp.asarray(2, jnp.int32), jnp.asarray(14, jnp.int32)
    on = jax.jit(lambda target: spend(lambda s, i: (s + 1, 7), *state, target))
    for target, steps in ((14, 2), (20, 2), (21, 3), (40, 5)):
        found = on(target)
        assert (int(found[0]), int(found[1]), int(found[2])) == (steps, steps, 7 * steps), target


def test_a_pilot_doubles_until_it_took_long_enough_and_tells_its_last_run_alone():
    clock, targets = Clock(scale(cost=3, points=1, pilot=1.0)), []
    for target in clock.targets():
        targets.append(target)
        clock.seconds += 0.3
        clock.note(target, loss=1.0 / target)
    assert targets == [3, 6, 12, 24]
    found = clock.record()
    assert {name: found[name].tolist() for name in ("cost", "loss", "seconds")} == {
        "cost": [24.0],
        "loss": [1 / 24],
        "seconds": [pytest.approx(1.2)],
    }


def test_what_measures_is_nobodys():
    clock = Clock(scale())
    assert float(clock.run(_double, jnp.asarray(3.0), free=True)) == 6.0
    assert clock.seconds == clock.compiling == 0.0
    assert float(clock.run(_triple, jnp.asarray(3.0))) == 9.0
    assert clock.compiling > 0
    before = clock.compiling
    clock.run(_triple, jnp.asarray(4.0))
    assert clock.compiling == before  # compiled once, for another number too


@dataclass
class Plain:
    """A user's problem in the plainest form: it is compared by what it holds, and so has no hash."""

    factor: float
    rows: np.ndarray = field(default_factory=lambda: np.ones(2))


def test_a_problem_without_a_hash_is_itself_and_no_other():
    clock, x = Clock(scale()), jnp.asarray(3)
    for factor, kind in ((2.0, "float32"), (3.0, "float32"), (2, "int32"), (True, "int32")):
        found = clock.run(_scaled, Plain(factor), x)
        assert (float(found), str(found.dtype)) == (3.0 * factor, kind)
    same = Plain(5.0)
    clock.run(_scaled, same, x)
    before = clock.compiling
    clock.run(_scaled, same, x)
    assert clock.compiling == before


def test_numbers_that_are_compiled_in_are_told_apart_by_their_type():
    clock, x = Clock(scale()), jnp.asarray(3)
    assert [str(clock.run(_multiplied, number, x).dtype) for number in (1, 1.0)] == ["int32", "float32"]


def _scaled(problem, x):
    return problem.factor * x


def _multiplied(number, x):
    return number * x


def _double(x):
    return 2 * x


def _triple(x):
    return 3 * x


def test_code_is_made_from_the_names_of_its_area():
    arm = Settings(
        {"code": "Binary() if flag else jnp.ones(size)", "area": "sampling", "swept": "", "flag": 0, "size": 2}
    )
    assert made(arm).shape == (2,)
    arm = Settings({"code": "max(a, other)", "area": "sampling", "swept": "a", "a": 0.5, "fact": 0.25})
    assert isinstance(traced(arm)["a"], jax.Array)
    assert traced(arm)["fact"] == 0.25  # not swept: it may choose code
    assert float(made(traced(arm), other=2)) == 2.0
    assert view({"x": 1}).x == 1
