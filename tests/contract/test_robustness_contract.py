"""A row for every attack; ``laureate.testing`` has the checks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from row_types import of_rows

from laureate._core import Status
from laureate.robustness import DI, FGSM, L2, MI, PGD, TI, VR, InteractionReduced, Linf, grid_players
from laureate.testing import check_attack
from laureate.testing._checks import Program

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.uniform(0.1, 0.9, size=(3, 4, 4, 1)), np.array([0, 1, 2])
INNER, OUTER = (jnp.asarray(RNG.normal(size=shape), jnp.float32) for shape in ((16, 6), (6, 3)))
PLAYERS = grid_players((4, 4), 2)


def logits(images):
    inner, outer = INNER.astype(images.dtype), OUTER.astype(images.dtype)
    return jnp.tanh(images.reshape(len(images), -1) @ inner) @ outer


def pgd(epsilon=0.2, ball=Linf, **settings):
    return PGD(logits, ball(epsilon), num_steps=3, **settings)


ATTACKS = {
    "fgsm": (FGSM(logits, Linf(0.2)), FGSM(logits, Linf(0.1)), 1),
    "pgd": (pgd(ball=L2, random_start=True), pgd(0.1, ball=L2, random_start=True), 1),
    "mi": (MI(pgd(ball=L2), 0.9), MI(pgd(ball=L2), 0.3), 1),
    "vr": (VR(pgd(ball=L2), 4, sigma=0.1), VR(pgd(ball=L2), 4, sigma=0.3), 4),
    "ti": (TI(pgd(ball=L2), 3, spread=1.0), TI(pgd(ball=L2), 3, spread=2.0), 1),
    "di": (DI(pgd(ball=L2), 1.0, 0.6), DI(pgd(ball=L2), 1.0, 0.8), 1),
    "ir": (
        InteractionReduced(pgd(ball=L2), PLAYERS, 1.0, num_subsets=3),
        InteractionReduced(pgd(ball=L2), PLAYERS, 2.0, num_subsets=3),
        9,
    ),
}
# Momentum replaces that of the attack within; smoothed, no step comes near the lower end; and three draws seldom fall
# between two probabilities.
UNUSED = {"mi": (".attack.momentum",), "ti": (".low",), "di": (".probability",)}
TYPES = of_rows("test_attack", ATTACKS, lambda row: type(row[0]))


@pytest.mark.parametrize("name", ATTACKS)
def test_attack(name):
    attack, other, cost = ATTACKS[name]
    check_attack(attack, IMAGES, LABELS, others=[other], cost=cost, unused=UNUSED.get(name, ()))


def test_a_step_of_every_attack():
    """What the rows above ask of whole runs, of one step each in a program that all share."""
    attacks = {name: row[0] for name, row in ATTACKS.items()}
    images, key = IMAGES.astype(np.float32), jax.random.key(5)

    def steps(attacks, key, images, labels):
        return {name: one.step(key, images, labels, one.init(key, images)) for name, one in attacks.items()}

    program = Program(steps)
    broken = images.copy()
    broken[0, 0] = np.nan
    given = ((images, LABELS), (images[::-1], LABELS[::-1]), (broken, LABELS))
    plain, turned, lost = (program(attacks, key, *one) for one in given)
    for name, (state, info) in plain.items():
        ball, cost = attacks[name].walk.ball, ATTACKS[name][2]
        delta = np.asarray(state.delta)
        flat = np.abs(delta).reshape(3, -1)
        sizes = flat.max(1) if isinstance(ball, Linf) else np.sqrt((flat**2).sum(1))
        assert (sizes > 0).all()
        assert (sizes <= float(ball.epsilon) + 1e-6).all()
        assert (images + delta).min() >= -1e-6
        assert (images + delta).max() <= 1 + 1e-6
        assert (int(info.cost), info.status.tolist()) == (cost, [Status.OK] * 3), name
        np.testing.assert_allclose(turned[name][0].delta[::-1], delta, atol=1e-5, err_msg=name)
        assert lost[name][1].status.tolist() == [Status.DIVERGED, Status.OK, Status.OK], name
        np.testing.assert_allclose(lost[name][0].delta[1:], delta[1:], atol=1e-5, err_msg=name)
