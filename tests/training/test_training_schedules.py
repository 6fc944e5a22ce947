"""Schedules on histories written by hand: when the boundary moves, and that it never moves back or beyond."""

import math

import pytest

from laureate.training import EpochReport, Fixed, NormRule, OfEpoch, Plateau, Staircase


def walked(schedule, norms, losses=None, num_blocks=5):
    """The boundaries of a run whose epochs have these norms and losses."""
    history, boundary, found = (), schedule((), num_blocks), []
    for epoch, norm in enumerate(norms):
        found.append(boundary)
        loss = 1.0 if losses is None else losses[epoch]
        history = (*history, EpochReport(epoch, boundary, boundary, loss, norm))
        boundary = schedule(history, num_blocks)
    return [*found, boundary]


def test_static_schedules():
    assert walked(Fixed(2), [1.0] * 3) == [2, 2, 2, 2]
    assert walked(Staircase(2, 3), [1.0] * 9) == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    assert walked(Staircase(1, 1, shift=2), [1.0] * 4) == [0, 2, 4, 4, 4]
    assert walked(Staircase(0, 1, max_boundary=2), [1.0] * 4) == [1, 2, 2, 2, 2]
    assert walked(OfEpoch(lambda epoch: epoch // 2), [1.0] * 3) == [0, 0, 1, 1]


def test_the_norm_rule_moves_when_the_norm_falls_below_the_fraction_of_its_average():
    # After epochs with norms 4, 4: mean of those before is 4, and 3.9 > 0.9·4: stays. 3.5 < 0.9·mean(4, 4, 3.9): moves.
    assert walked(NormRule(0.9, window=3), [4, 4, 3.9, 3.5, 3.5]) == [0, 0, 0, 0, 1, 1]
    # Only epochs of the same transition block are compared: the first of a block never moves the boundary.
    assert walked(NormRule(0.9, window=3), [4, 3, 2, 1, 0.5]) == [0, 0, 1, 1, 2, 2]
    # The window forgets: 2 < 0.9·mean(10, 2.1) but not < 0.9·2.1.
    assert walked(NormRule(0.5, window=2), [10, 6, 3.9]) == [0, 0, 0, 1]
    assert walked(NormRule(0.5, window=1), [10, 6, 3.9]) == [0, 0, 0, 0]
    # Exactly the fraction is not below it.
    assert walked(NormRule(0.5, window=1), [4, 2]) == [0, 0, 0]


def test_dynamic_schedules_wait_shift_and_stop():
    falling = [2.0**-e for e in range(12)]
    assert walked(NormRule(0.9, start=4), falling[:6]) == [0, 0, 0, 0, 1, 1, 2]
    assert walked(NormRule(0.9, shift=2), falling[:6]) == [0, 0, 2, 2, 4, 4, 4]
    assert walked(NormRule(0.9, max_boundary=1), falling[:6]) == [0, 0, 1, 1, 1, 1, 1]
    assert walked(NormRule(0.9), falling) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4, 4]


def test_the_plateau_moves_when_the_loss_hardly_falls():
    losses = [1.0, 0.5, 0.49, 0.2, 0.2]
    assert walked(Plateau(0.05, window=1), [1.0] * 5, losses) == [0, 0, 0, 1, 1, 2]
    assert walked(Plateau(0.05, window=1, start=5), [1.0] * 5, losses) == [0, 0, 0, 0, 0, 1]
    assert walked(Plateau(0.0, window=2), [1.0] * 3, [1.0, 0.8, 0.95]) == [0, 0, 0, 1]
    # A fall by the tolerance exactly is none that is too small.
    assert walked(Plateau(0.5, window=1), [1.0] * 2, [1.0, 0.5]) == [0, 0, 0]


def test_a_loss_below_zero_falls_as_one_above_it():
    """A log-likelihood, say: by how much it must fall is a share of its size."""
    losses = [-1.0, -2.0, -2.05, -2.5, -2.5]
    assert walked(Plateau(0.05, window=1), [1.0] * 5, losses) == [0, 0, 0, 1, 1, 2]
    assert walked(Plateau(0.5, window=1), [1.0] * 2, [-1.0, -1.5]) == [0, 0, 0]  # by the tolerance exactly
    assert walked(Plateau(0.5, window=1), [1.0] * 2, [1.0, -0.1]) == [0, 0, 0]


@pytest.mark.parametrize("kind", [NormRule, Plateau])
def test_a_run_that_goes_on_under_another_schedule_does_not_fall_back(kind):
    """The boundary stands beyond ``most``, or what was recorded is no number: it stays where it is."""
    for norm, loss in ((1.0, 1.0), (0.1, 2.0), (math.nan, math.nan)):
        history = (EpochReport(0, 3, 3, 1.0, 1.0), EpochReport(1, 3, 3, loss, norm))
        assert kind(max_boundary=1)(history, 6) == 3
    assert kind()(history, 6) == 3
    moved = (EpochReport(0, 3, 3, 1.0, 1.0), EpochReport(1, 3, 3, 2.0, 0.1))
    assert (kind(shift=2)(moved, 6), kind(shift=5)(moved, 6), kind(shift=2, max_boundary=4)(moved, 6)) == (5, 5, 4)


@pytest.mark.parametrize("schedule", [Staircase(1, 2), NormRule(0.99), Plateau(0.01)])
def test_boundaries_never_fall_and_never_pass_the_last_block(schedule):
    norms = [abs((7 * e) % 5 - 2) + 0.5 for e in range(40)]
    found = walked(schedule, norms, [n / 2 for n in norms], num_blocks=4)
    assert found == sorted(found)
    assert max(found) == 3
