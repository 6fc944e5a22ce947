"""The claims of referring segmentation: ids, fair arms, trials that measure what they say, a problem of one's own."""

import inspect
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from example_files import loaded
from laureate import grounding as g
from laureate.lab.claim import Settings
from laureate.papers.referring_segmentation import speed, trials
from laureate.papers.referring_segmentation.about import PAPER
from laureate.papers.referring_segmentation.experiments import DESK, WHERE
from laureate.papers.referring_segmentation.experiments_form import FORM
from laureate.papers.referring_segmentation.experiments_limits import COMPOSED, NARROW
from laureate.problems.scenes import COLOURS, KINDS, Drawn, Scenes

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_phrases.py"
TINY = WHERE.scales["tiny"].settings
KEY = jax.random.key(3)
PROBLEM = Scenes()


def arm(name, experiment=WHERE):
    return experiment.arm(name).settings


def test_the_ids_are_the_ones_promised():
    promised = {"conditioning", "shuffled-text", "both-against-top-down", "dissociation", "filter-size", "against-film"}
    assert promised | {"compositional", "narrow-network"} <= {claim.name for claim in PAPER.claims}


def test_arms_differ_in_what_their_names_say_alone():
    size = {}
    for a in (*WHERE.arms[:5], *FORM.arms[1:4]):
        network = trials.make_network(KEY, a.settings, Settings(DESK), 26)
        size[a.name] = network.num_parameters
        assert network.unet.conditioning == {"none": "none", "bottom-up": "bottom-up"}.get(
            a.name, "top-down" if a.name.startswith("top-down") else "both"
        )
        assert network.stem.kernel.shape == (3, 3, 3, 8)
        assert network.unet.depth == 2
        filters = network.unet.down_filters or network.unet.up_filters
        kind = {"film": g.FiLM, "concatenation": g.Concatenation}.get(a.name, g.LanguageFilter)
        assert a.name == "none" or {type(one) for one in filters} == {kind}
        if kind is g.LanguageFilter and filters:
            assert {getattr(one, "kernel_size", None) for one in filters} == {3 if a.name == "both-3" else 1}
    assert size["none"] < size["top-down"] < size["both"] <= size["top-down-wider"] < 1.5 * size["both"]
    for other in ("film", "concatenation"):
        assert abs(size[other] - size["both"]) < 0.01 * size["both"]


def test_every_experiment_has_trivial_arms_and_a_guard_of_its_threshold():
    for experiment in PAPER.experiments:
        assert "threshold" in {guard.metric for guard in experiment.guards}
        assert {"background", "foreground", "mean-mask"} <= {a.name for a in experiment.arms}


def test_examples_are_split_once_and_looks_are_what_they_say():
    found = trials.prepared(KEY, PROBLEM, TINY)
    assert trials.prepared(KEY, PROBLEM, TINY) is found
    drawn = PROBLEM.draw(jax.random.split(KEY)[0], 60)
    np.testing.assert_array_equal(found.train.images, drawn.images[:24])
    np.testing.assert_array_equal(found.train.masks, drawn.masks[:24])
    looks = {name: (found.images[rows], found.masks[rows], words) for name, (rows, words, _) in found.looks.items()}
    np.testing.assert_array_equal(looks["validation"][0], drawn.images[24:36])
    np.testing.assert_array_equal(looks["test"][1], drawn.masks[36:])
    vocabulary = g.Vocabulary(PROBLEM.words, 8)
    said = lambda name: [" ".join(vocabulary.words[n] for n in row if n) for row in looks[name][2]]  # noqa: E731
    assert said("test") == drawn.phrases[36:]
    assert said("validation") == drawn.phrases[24:36]
    assert said("shuffled") == [*drawn.phrases[48:], *drawn.phrases[36:48]]
    np.testing.assert_array_equal(looks["shuffled"][1], looks["test"][1])
    hidden = [" ".join("<unk>" if word in COLOURS else word for word in p.split()) for p in drawn.phrases[36:]]
    assert said("without colours") == hidden
    np.testing.assert_array_equal(found.kinds, drawn.kinds[36:])
    assert "novel" not in found.looks


def test_novel_scenes_are_looked_at_where_pairs_are_held_out():
    problem = Scenes(held_out=2)
    found = trials.prepared(KEY, problem, TINY)
    draw = {"novel": problem.draw_novel, "familiar": problem.draw_familiar}
    for look, drawn in ((look, draw[look](jax.random.split(KEY)[1], 24)) for look in draw):
        rows, words, _ = found.looks[look]
        np.testing.assert_array_equal(found.masks[rows], drawn.masks)
        np.testing.assert_array_equal(found.images[rows], drawn.images)
        np.testing.assert_array_equal(words, g.Vocabulary(problem.words, 8).encode(drawn.phrases).words)


def test_who_has_fewer_examples_splits_them_in_the_same_shares():
    drawn = PROBLEM.draw(KEY, 30)
    few = type("Few", (), {"draw": lambda self, key, num: Drawn(*drawn[:4])})()
    found = trials.prepared(KEY, few, TINY)
    assert [len(found.train.masks), *(len(found.looks[name][0]) for name in ("validation", "test"))] == [12, 6, 12]


def test_trivial_arms_by_hand():
    draw_key = jax.random.split(KEY)[0]
    drawn = PROBLEM.draw(jax.random.split(draw_key)[0], 60)
    masks = drawn.masks[36:]
    everything = trials.segmented(KEY, arm("foreground"), PROBLEM, TINY)
    assert float(everything["iou"]) == pytest.approx(masks.mean((1, 2)).mean())
    assert float(everything["cumulative_iou"]) == pytest.approx(masks.mean())
    assert float(everything["shuffle_drop"]) == 0
    attribute = drawn.kinds[36:] == KINDS.index("attribute")
    assert float(everything["iou_attribute"]) == pytest.approx(masks[attribute].mean((1, 2)).mean())
    assert float(trials.segmented(KEY, arm("background"), PROBLEM, TINY)["iou"]) == 0
    mean = trials.segmented(KEY, arm("mean-mask"), PROBLEM, TINY)
    guess = drawn.masks[:24].mean(0) > float(mean["threshold"])
    both, either = (masks & guess).sum((1, 2)), (masks | guess).sum((1, 2))
    assert float(mean["iou"]) == pytest.approx((both / either).mean())
    # The threshold is the best on validation scenes.
    scores = []
    for threshold in g.THRESHOLDS:
        at = drawn.masks[:24].mean(0) > threshold
        scores.append((drawn.masks[24:36] & at).sum() / (drawn.masks[24:36] | at).sum())
    assert float(mean["threshold"]) == pytest.approx(g.THRESHOLDS[int(np.argmax(scores))])


@pytest.fixture
def planted(monkeypatch):
    """Overlaps of known size for every look: the threshold of place 3 is best on validation, that of 7 on the test."""
    found = trials.prepared(jax.random.split(KEY)[0], PROBLEM, TINY)

    def scored(key, rate, arm, shapes, num_words, train, images, masks, looks):
        overlaps = {}
        for name, (rows, *_) in looks.items():
            good = {"validation": 8, "test": 6, "shuffled": 2, "novel": 5, "familiar": 6}
            both = np.full((len(rows), len(g.THRESHOLDS)), 1)
            both[:, 3] = good.get(name, 3)
            both[:, 7] = {"validation": 7}.get(name, 9)
            if name == "test":
                both[found.kinds == KINDS.index("place"), 3] -= 2
            overlaps[name] = (both, np.full_like(both, 10))
        return overlaps, np.float32(0.5)

    monkeypatch.setattr(trials, "_scored", scored)


def test_the_threshold_is_chosen_on_validation(planted):
    found = trials.segmented(KEY, arm("both"), PROBLEM, TINY)
    assert float(found["threshold"]) == pytest.approx(0.2)
    assert float(found["loss"]) == 0.5
    wanted = {
        "iou_attribute": 0.6,
        "iou_place": 0.4,
        "iou_relation": 0.6,
        "iou": 16 / 30,
        "cumulative_iou": 16 / 30,
        "attribute_minus_place": 0.2,
        "relation_minus_attribute": 0.0,
        "shuffled_iou": 0.2,
        "shuffle_drop": 1 / 3,
        "colour_word_drop": 16 / 30 - 0.3,
        "precision_50": 2 / 3,
    }
    assert {name: float(found[name]) for name in wanted} == pytest.approx(wanted, abs=1e-6)
    np.testing.assert_allclose(found["precision"], [2 / 3, 2 / 3, 0, 0, 0], atol=1e-6)


def test_novel_and_seen_pairs_by_hand(planted):
    found = trials.composed(KEY, arm("both", COMPOSED), Scenes(held_out=2), TINY)
    wanted = {"seen_iou": 0.6, "novel_iou": 0.5, "novel_gap": 0.1}
    assert {name: float(found[name]) for name in wanted} == pytest.approx(wanted, abs=1e-6)


@pytest.mark.slow
def test_a_network_is_trained_and_scored_as_the_library_does(monkeypatch):
    """The overlaps against those of the network that training returns, asked for the test alone."""
    found = trials.prepared(KEY, PROBLEM, TINY)
    shapes = Settings({name: TINY[name] for name in trials.SHAPING})
    kind, asked = arm("both"), []

    def train(key, network, examples, num_steps, *, batch, learning_rate):
        asked.append((num_steps, batch, examples.images.shape, examples.words.shape))
        moved = eqx.tree_at(lambda n: n.last_shift, network, network.last_shift + learning_rate)
        return moved, jnp.arange(float(num_steps))

    monkeypatch.setattr(g, "train", train)
    scored = eqx.filter_jit(inspect.unwrap(trials._scored), **trials.LIGHT)
    overlaps, loss = scored(KEY, 0.7, kind, shapes, found.num_words, *trials._arrays(found))
    assert asked == [(2, 4, (24, 16, 16, 3), (24, 8))]
    assert float(loss) == 1.0

    @eqx.filter_jit(**trials.LIGHT)
    def alone(images, words, lengths):
        network = trials.make_network(jax.random.split(KEY)[0], kind, Settings(TINY), found.num_words)
        return jax.nn.sigmoid(network(images, words, lengths)[-1] + 0.7)

    rows, words, lengths = found.looks["test"]
    both, either = g.overlaps(alone(found.images[rows], words, lengths), found.masks[rows])
    assert np.mean(np.asarray(overlaps["test"][0]) != both) < 0.02  # a pixel may lie at a threshold
    assert np.mean(np.asarray(overlaps["test"][1]) != either) < 0.02
    assert np.asarray(both).any()


def test_all_experiments_name_arms_whose_programs_are_the_same():
    """What is asked again of another experiment compiles nothing new: the same settings, sizes and shapes."""
    assert arm("both") == arm("both", COMPOSED) == arm("both", NARROW)
    assert arm("both") == arm("both", FORM)
    assert arm("film", FORM) == arm("film", COMPOSED)
    assert WHERE.scales["desk"].settings == FORM.scales["desk"].settings == COMPOSED.scales["desk"].settings


def test_the_example_of_ones_own_phrases(monkeypatch):
    module = loaded(EXAMPLE)
    problem = module.Paper()
    found = trials.segmented(KEY, arm("mean-mask"), problem, TINY)
    assert np.isfinite(float(found["iou"]))
    assert np.isnan(float(found["iou_place"]))
    images, masks, phrases = module.draw(np.random.default_rng(0), 40)
    assert masks.any((1, 2)).all()
    assert set(phrases) == set(module.PHRASES)
    dark = images.mean(-1) < 0.5
    assert (masks & dark).sum() > 0.95 * masks.sum()


@pytest.mark.slow
def test_the_example_learns():
    module = loaded(EXAMPLE)
    scores = module.main()
    assert scores["both"] > scores["none"] + 0.1


def test_both_sides_of_the_comparison_do_the_same_work():
    """Ours against the equation; PyTorch's where it is installed."""
    work = speed.Work(batch=2, side=4, channels=3, text_size=5, kernel=3)
    features, text, weight, bias = speed.made(work)
    raw = (text @ weight + bias).reshape(2, 3, 3, 3, 3)
    kernels = raw / np.linalg.norm(raw, axis=-1, keepdims=True)
    padded = np.pad(features, ((0, 0), (1, 1), (1, 1), (0, 0)))
    wanted = sum(
        np.einsum("bhwi,bio->bhwo", padded[:, u : u + 4, v : v + 4], kernels[:, u, v]) for u, v in np.ndindex(3, 3)
    )
    np.testing.assert_allclose(speed.our_side(work).run(), wanted, atol=1e-4)
    pytest.importorskip("torch")
    np.testing.assert_allclose(speed.torch_side(work).run().permute(0, 2, 3, 1).numpy(), wanted, atol=1e-4)
