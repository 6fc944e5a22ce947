"""The claims of the interaction attack: the ids promised, trials that measure what they say, a problem of one's own."""

import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from example_files import run_with_problem
from laureate import robustness as r
from laureate.lab.claim import Settings
from laureate.papers.interaction_attack import trials
from laureate.papers.interaction_attack.about import PAPER
from laureate.papers.interaction_attack.experiments import ARMS, CONVOLUTIONAL, TRANSFER
from laureate.papers.interaction_attack.experiments_strength import INDEX, STRENGTH
from laureate.problems.classifiers import ImageClasses

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_classifier.py"
TINY = TRANSFER.scales["tiny"]
SCALE = Settings(dict(TINY.settings), networks=("residual", "wide", "narrow"))
KEY = jax.random.key(3)


class Problem(eqx.Module):
    """Two classes that the brighter half of a picture tells, in eight by eight noisy pixels."""

    images: jax.Array
    labels: jax.Array
    test_images: jax.Array
    test_labels: jax.Array

    def __init__(self):
        rng = np.random.default_rng(0)
        labels = rng.integers(2, size=240)
        images = rng.uniform(0.2, 0.6, size=(240, 8, 8, 1))
        images[labels == 0, :, :4] += 0.25
        images[labels == 1, :, 4:] += 0.25
        self.images, self.test_images = (jnp.asarray(part, jnp.float32) for part in (images[:200], images[200:]))
        self.labels, self.test_labels = jnp.asarray(labels[:200]), jnp.asarray(labels[200:])


PROBLEM = Problem()


def arm(name):
    return next(arm.settings for arm in ARMS if arm.name == name)


@pytest.fixture(scope="module")
def plain():
    return trials.attacked(KEY, arm("pgd"), PROBLEM, SCALE)


def test_the_ids_are_the_ones_promised():
    promised = {"momentum-lowers-interaction", "transfer", "correlation", "strength", "protocol", "compute-matched"}
    assert promised | {"index-choice", "baselines-lower-it"} <= {claim.name for claim in PAPER.claims}


@pytest.mark.slow
def test_the_networks_of_a_seed_are_trained_once_and_learn():
    train_key = jax.random.split(KEY)[0]
    networks = trials.trained(train_key, PROBLEM, SCALE)
    assert list(networks) == ["residual", "wide", "narrow"]
    assert all(one is two for one, two in zip(networks.values(), trials.trained(train_key, PROBLEM, SCALE).values()))  # noqa: B905
    for network in networks.values():
        assert float((network(PROBLEM.test_images).argmax(1) == PROBLEM.test_labels).mean()) > 0.7
    # A network is the same whichever others are trained.
    (alone,) = trials.trained(train_key, PROBLEM, Settings(dict(SCALE), networks=("narrow",))).values()
    np.testing.assert_array_equal(alone.weights[0], networks["narrow"].weights[0])
    others = trials.trained(jax.random.key(4), PROBLEM, SCALE)
    assert not np.allclose(others["wide"].weights[0], networks["wide"].weights[0])


def test_pooled_images_are_means_of_squares():
    whole, small = (ImageClasses("digits", train=3, test=2, pool=pool) for pool in (1, 2))
    for large, pooled in ((whole.images, small.images), (whole.test_images, small.test_images)):
        for i, j in np.ndindex(4, 4):
            square = large[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            np.testing.assert_allclose(pooled[:, i, j], square.mean((1, 2)), atol=1e-6)


def test_what_is_measured_is_what_the_library_gives_for_the_same_perturbation(plain):
    """Success, margins and interaction recomputed from the perturbation itself."""
    train_key, attack_key = jax.random.split(KEY)
    source, *targets = trials.trained(train_key, PROBLEM, SCALE).values()
    images, labels = PROBLEM.test_images, PROBLEM.test_labels
    attack = r.PGD(source, r.Linf(SCALE.epsilon), SCALE.epsilon / 10, num_steps=SCALE.steps)
    delta = trials._last(attack, attack_key, images, labels)
    report = r.transfer(delta, targets, images, labels, also=[source])
    counted = np.asarray(report.counted)
    assert 0 < counted.sum() < 41
    np.testing.assert_array_equal(plain.counted, counted)
    np.testing.assert_array_equal(plain.success, np.asarray(report.success)[:, counted])
    margin = np.asarray(r.margin(source(images + delta), labels))[counted]
    np.testing.assert_allclose(plain.margin, margin, rtol=1e-3, atol=1e-4)
    rises = [np.asarray(r.margin(t(images + delta), labels) - r.margin(t(images), labels))[counted] for t in targets]
    np.testing.assert_allclose(plain.utility, rises, rtol=1e-3, atol=1e-4)
    assert plain.by_iterate.shape == (SCALE.steps, 2, counted.sum())
    assert not plain.by_iterate[0].any()  # the first iterate of the authors is the clean image


def test_the_protocol_sees_every_iterate_before_its_step(monkeypatch):
    clean = np.asarray(PROBLEM.test_images)
    moved = lambda _, images, __: np.where(np.any(np.asarray(images) != clean, axis=(1, 2, 3)), 1.0, -1.0)  # noqa: E731
    monkeypatch.setattr(trials, "_margins", moved)
    found = trials.attacked(KEY, arm("pgd"), PROBLEM, SCALE).by_iterate
    assert not found[0].any()
    assert found[1:].all()


def test_a_network_has_the_same_key_whichever_others_are_trained(monkeypatch):
    monkeypatch.setattr(trials, "_trained", {})
    monkeypatch.setattr(trials, "_train", lambda key, *_: tuple(np.asarray(jax.random.key_data(key)).tolist()))
    networks = trials.trained(KEY, PROBLEM, SCALE)
    assert len(set(networks.values())) == len(networks)
    for kind, key in networks.items():
        assert trials.trained(KEY, PROBLEM, Settings(dict(SCALE), networks=(kind,))) == {kind: key}


def test_metrics_by_hand(plain, monkeypatch):
    rng = np.random.default_rng(1)
    made = plain._replace(
        success=rng.uniform(size=(2, 9)) < 0.6,
        utility=rng.normal(size=(2, 9)),
        by_iterate=rng.uniform(size=(3, 2, 9)) < 0.5,
        margin=rng.normal(size=9),
        interaction=rng.normal(size=9),
        at_boundary=rng.normal(size=9),
    )
    plainly = made._replace(margin=rng.normal(size=9), at_boundary=rng.normal(size=9))
    is_plain = lambda arm: (arm.gradient, arm.momentum, arm.loss, arm.long) == ("plain", 0.0, "cross-entropy", False)  # noqa: E731
    monkeypatch.setattr(trials, "attacked", lambda _, arm, *__: plainly if is_plain(arm) else made)
    monkeypatch.setattr(trials, "_plain", {})
    measured = lambda name: {m: float(v) for m, v in trials.transferred(KEY, arm(name), PROBLEM, SCALE).items()}  # noqa: E731
    found = measured("mi")
    both = (made.margin > 0) & (plainly.margin > 0)
    assert 0 < both.sum() < min((made.margin > 0).sum(), (plainly.margin > 0).sum())
    chosen = np.stack([r.leave_one_out(made.by_iterate[:, t]) for t in range(2)]).mean()
    wanted = {
        "transfer": made.success.mean(),
        "protocol_transfer": chosen,
        "protocol_gain": chosen - made.success.mean(),
        "white_box": (made.margin > 0).mean(),
        "white_margin": made.margin.mean(),
        "interaction": made.interaction.mean(),
        "matched_difference": (made.at_boundary[both] - plainly.at_boundary[both]).mean(),
        "both_fooled": both.sum(),
        "correlation": r.rank_correlation(made.interaction, made.success.mean(0)),
        "partial_correlation": r.partial_rank_correlation(made.interaction, made.success.mean(0), made.margin),
        "utility_correlation": r.rank_correlation(made.interaction, made.utility.mean(0)),
        "partial_utility_correlation": r.partial_rank_correlation(made.interaction, made.utility.mean(0), made.margin),
        "counted": plain.counted.sum(),
    }
    assert found == pytest.approx(wanted, abs=1e-6)
    assert measured("pgd")["matched_difference"] == 0
    # Who kept one iterate has nothing to choose from.
    made = made._replace(by_iterate=made.by_iterate[:1])
    assert set(wanted) - set(measured("fgsm")) == {"protocol_transfer", "protocol_gain"}


def test_scaled_perturbations_reach_the_boundary():
    """On a network of one product the interaction of tδ is t² that of δ, and t is known."""
    network = lambda x: jnp.stack([jnp.full(len(x), 0.02), x[:, 0, 0, 0] * x[:, 1, 1, 0]], axis=1)  # noqa: E731
    images, delta = jnp.zeros((1, 2, 2, 1)), jnp.full((1, 2, 2, 1), 0.2)
    labels, players = jnp.array([0]), r.grid_players((2, 2), 2)
    shorter = trials._to_boundary(network, images, delta, labels)
    np.testing.assert_allclose(shorter, 0.02**0.5, rtol=1e-3)
    assert trials._margins(network, images + shorter, labels) > 0
    whole, matched = (trials._interaction(network, images, d, labels, players) for d in (delta, shorter))
    np.testing.assert_allclose(whole, 0.04 / 6, rtol=1e-4)
    np.testing.assert_allclose(matched, 0.02 / 6, rtol=1e-3)
    np.testing.assert_array_equal(trials._to_boundary(network, images, 0.1 * delta, labels), 0.1 * delta)


def test_the_strength_is_chosen_on_other_images_and_another_network(monkeypatch):
    """Each strength's success is planted: 0.1 wins where it is chosen, 10 where it is judged."""
    counted = np.ones(8, bool)
    counted[1] = False  # places count among all images, not among those that count
    first = np.flatnonzero(counted) < 4

    def planted(key, arm, problem, scale, every):
        assert not every
        success = np.zeros((3, 7), bool)
        success[-1, first] = arm.strength == 0.1
        success[:-1, ~first] = arm.strength == 10.0
        success[0, ~first] |= arm.strength == 0.1
        success[:-1, first] = success[-1, ~first] = arm.strength == 1.0
        success[-1, first] |= arm.strength == 0.0  # no strength at all is not to be chosen
        nothing = np.zeros(7)
        return trials.Attacked(success, nothing, nothing, nothing, nothing, nothing, counted)

    monkeypatch.setattr(trials, "attacked", planted)
    scale = Settings(dict(SCALE), strengths=(0.0, 0.1, 1.0, 10.0))
    found = trials.strength(KEY, arm("ir"), PROBLEM, scale)
    np.testing.assert_allclose(found["transfer"], [0, 0.5, 0, 1])
    assert float(found["chosen_strength"]) == pytest.approx(0.1)
    assert float(found["tuned_gain"]) == pytest.approx(0.5)
    assert float(found["lost_at_strongest"]) == pytest.approx(-1.0)


def test_arms_are_the_attacks_their_labels_say():
    source = trials.trained(jax.random.split(KEY)[0], PROBLEM, SCALE)["residual"]
    players = r.grid_players((8, 8), 2)
    made = {a.name: trials.make_attack(a.settings, source, players, SCALE) for a in ARMS if a.name != "noise"}
    passes = 2 * SCALE.subsets + 3
    kinds = {"vr": r.VR, "ti": r.TI, "di": r.DI, "fgsm": r.FGSM, "ir": r.InteractionReduced, "pgd": r.PGD}
    assert all(type(made[name]) is kind for name, kind in kinds.items())
    assert {name: float(attack.walk.momentum) for name, attack in made.items() if attack.walk.momentum} == {
        "mi": 1.0,
        "mi-ir": 1.0,
    }
    assert {name for name, attack in made.items() if attack.walk.loss == "margin"} == {"pgd-margin", "ir-margin"}
    assert isinstance(made["sgm"].walk.logits, r.SGM)
    # The same passes in all for what is matched.
    cost = {name: attack.num_passes * attack.walk.num_steps for name, attack in made.items()}
    assert cost["ir"] == cost["pgd-long"] == cost["vr"] == passes * SCALE.steps
    assert isinstance(made["vr"], r.VR)
    assert float(made["vr"].sigma) == pytest.approx(15 / 16 * SCALE.epsilon)  # the authors' 15/255 at 16/255
    assert all(float(a.strength) == 1.0 for a in made.values() if isinstance(a, r.InteractionReduced))


def test_strengths_hold_the_authors_own_and_none():
    for scale in STRENGTH.scales.values():
        assert scale.settings.strengths[0] == 0.0
        assert 1.0 in scale.settings.strengths
        assert scale.settings.strengths[-1] == 10.0


def test_the_attacked_network_is_the_one_named():
    assert {scale.settings.networks[0] for scale in TRANSFER.scales.values()} == {"residual"}
    assert {scale.settings.networks[0] for scale in CONVOLUTIONAL.scales.values()} == {"convolutional"}


def test_the_players_that_are_enumerated_cover_the_image():
    players = trials.blocks((8, 8), 3, 4)
    assert players.count == 12
    assert players.labels[0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert players.labels[:, 0].tolist() == [0, 0, 0, 4, 4, 4, 8, 8]
    assert {scale.settings.rows * scale.settings.columns for scale in INDEX.scales.values()} == {4, 12, 16}


@pytest.mark.slow
def test_the_example_tells_transfer_and_interaction():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert "interaction-reduced against PGD" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    run_with_problem(monkeypatch, tmp_path, "interaction-attack/strength", f"{EXAMPLE}:Stripes")
