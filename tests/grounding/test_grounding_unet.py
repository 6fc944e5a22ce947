"""The modulated U-Net: sizes, no leak of language past where it may enter, no leak between examples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import grounding as g
from laureate.layers import convolve
from laureate.testing import KeyRecorder
from networks import drawn

RNG = np.random.default_rng(0)
MAPS, TEXT = RNG.normal(size=(2, 8, 9, 3)).astype(np.float32), RNG.normal(size=(2, 6)).astype(np.float32)


def unet(conditioning, depth=3, **settings):
    return g.LanguageUNet(
        jax.random.key(0), 3, 6, depth=depth, width=4, kernel_size=3, conditioning=conditioning, **settings
    )


def slopes(network):
    """∂ of every map with respect to the text, as the largest entry."""

    def maps(text):
        found = network.maps(MAPS, text)
        # The squares, for a sum of normalised values is constant.
        return [jnp.stack([jnp.sum(m * jnp.cos(jnp.arange(m.size)).reshape(m.shape)) for m in part]) for part in found]

    skips, rising = jax.jit(jax.jacrev(maps))(TEXT)
    return [float(jnp.abs(one).max()) for one in skips], [float(jnp.abs(one).max()) for one in rising]


def test_bottom_up_alone_has_skips_that_know_nothing_of_the_phrase():
    skips, rising = slopes(unet("bottom-up"))
    assert skips[:-1] == [0.0, 0.0]
    assert skips[-1] > 0
    assert min(rising) > 0


def reached(program, number):
    """Which outputs of a traced program the input of this number can change, an operation being all or nothing."""
    told = {program.jaxpr.invars[number]}
    for equation in program.jaxpr.eqns:
        if any(not hasattr(value, "val") and value in told for value in equation.invars):  # no literals
            told.update(equation.outvars)
    return [value in told for value in program.jaxpr.outvars]


@pytest.mark.parametrize(
    ("conditioning", "knowing"),
    [("bottom-up", [0, 0, 1, 1, 1, 1]), ("top-down", [0, 0, 0, 1, 1, 1]), ("none", [0] * 6), ("both", [1] * 6)],
)
def test_the_phrase_reaches_the_maps_that_it_may_reach(conditioning, knowing):
    """Of the traced program: three skips, the deepest last, and three maps that rise; nothing is computed for it."""
    network = drawn(lambda key: g.LanguageUNet(key, 3, 6, depth=3, width=4, kernel_size=3, conditioning=conditioning))
    program = jax.make_jaxpr(network.maps)(MAPS, TEXT)
    assert reached(program, 1) == [bool(one) for one in knowing]
    assert all(reached(program, 0))


@pytest.mark.parametrize("conditioning", ["both", "bottom-up", "top-down", "none"])
def test_every_weight_reaches_the_maps_of_its_own_way_and_level_and_no_others(conditioning):
    """F₁ F₂ F₃ and G₃ G₂ G₁, and a logit map for each G and the finest: of the traced program, nothing is computed."""
    settings = {"depth": 3, "width": 4, "text_size": 6, "kernel_size": 3, "conditioning": conditioning}
    network = drawn(lambda key: g.Segmenter(key, 7, inputs=1, **settings))
    unet, rest = eqx.partition(network.unet, eqx.is_inexact_array)
    maps = lambda weights: jax.tree.leaves(eqx.combine(weights, rest).maps(np.ones((1, 8, 9, 12), "f4"), TEXT[:1]))  # noqa: E731
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(unet)]
    program = jax.make_jaxpr(maps)(unet)
    for number, path in enumerate(paths):
        level = int(path.partition("[")[2].partition("]")[0])
        if path.startswith((".down", ".visual")) and conditioning == "bottom-up":
            ahead = [0, 0, 1, 1, 1, 1] if path.startswith(".down") else [level < 1, 1, 0, 0, 1, 1]
        elif path.startswith(".down"):
            ahead = [level <= 0, level <= 1, 1, 1, 1, 1]
        else:
            ahead = [0, 0, 0, level >= 2, level >= 1, 1]
        assert reached(program, number) == [bool(one) for one in ahead], path
    weights, rest = eqx.partition(network, eqx.is_inexact_array)
    said = np.ones((1, 2), int), np.ones(1, int)
    logits = lambda weights: eqx.combine(weights, rest)(np.ones((1, 16, 17, 1), "f4"), *said)  # noqa: E731
    program = jax.make_jaxpr(logits)(weights)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(weights)]
    for number, path in enumerate(paths):
        if path.startswith((".last", ".stem")):
            assert reached(program, number) == [path.startswith(".stem")] * 3 + [True], path


def test_every_map_has_a_head_of_its_own():
    """Of maps that rise as they are given here: 1 × 1 convolutions of each, and a transposed one of the last."""
    rising = tuple(RNG.normal(size=(1, *size, 4)).astype("f4") for size in ((3, 3), (5, 5)))

    class Given(eqx.Module):
        def maps(self, features, text, *, key):
            return g.UNetMaps((), rising)

    network = drawn(lambda key: g.Segmenter(key, 7, inputs=1, depth=2, width=4, text_size=4))
    network = eqx.tree_at(lambda n: (n.unet, n.encoder), network, (Given(), lambda words, lengths: None))
    words = np.ones((1, 2), int), np.ones(1, int)
    last = lambda: g.double(rising[-1], network.last.kernel, (9, 10))[..., 0] + network.last_shift  # noqa: E731
    found, finest = jax.jit(lambda: (network(np.ones((1, 9, 10, 1), "f4"), *words), last()))()
    wanted = [rising[i] @ np.asarray(network.heads[i]) + network.head_shifts[i] for i in (0, 1)]
    for one, two in zip(found, [*wanted, finest], strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


@pytest.mark.slow
def test_top_down_alone_has_skips_that_know_nothing_of_the_phrase():
    skips, rising = slopes(unet("top-down"))
    assert skips == [0.0] * 3
    assert min(rising) > 0


@pytest.mark.slow
def test_without_language_nothing_knows_and_with_both_everything_does():
    skips, rising = slopes(unet("none"))
    assert not any(skips)
    assert not any(rising)
    skips, rising = slopes(unet("both"))
    assert min(skips) > 0
    assert min(rising) > 0


def maps_that_stay(where, field):
    """Of each part of the phrase that is changed alone, which maps are the same."""
    network = unet(where)
    maps = eqx.filter_jit(lambda text: getattr(network.maps(MAPS, text), field))
    before = maps(TEXT)
    for level in range(3):
        other = TEXT.copy()
        other[:, 2 * level : 2 * level + 2] += 1.0
        yield level, [bool(np.array_equal(one, two)) for one, two in zip(maps(other), before, strict=True)]


def test_each_level_reads_its_own_part_of_the_phrase():
    """Changing part i changes F_i and what is below it, but none of the maps above."""
    for level, same in maps_that_stay("both", "skips"):
        assert same == [number < level for number in range(3)]


def test_the_way_up_reads_the_part_of_its_level():
    for level, same in maps_that_stay("top-down", "rising"):
        assert same == [number < 2 - level for number in range(3)]  # the deepest is first


def test_one_level_by_hand():
    """F₁ = ReLU(norm(↓[F₀ ; f(F₀)])) and G₁ = ReLU(norm(↑f′(F₁))), from stride 1 and every second pixel."""
    network = unet("both", depth=1)
    maps = eqx.filter_jit(lambda: network.maps(MAPS[:, :8, :8], TEXT))()

    @eqx.filter_jit
    def hand():
        start = MAPS[:, :8, :8]
        both = jnp.concatenate([start, network.down_filters[0](start, TEXT)], axis=-1)
        first = jax.nn.relu(network.down_norms[0](convolve(both, network.down[0].kernel)[:, ::2, ::2]))
        told = network.up_filters[0](first, TEXT)
        spread = jnp.zeros((2, 8, 8, 4)).at[:, ::2, ::2].set(told)
        mirrored = network.up[0].kernel[::-1, ::-1]
        return first, jax.nn.relu(network.up_norms[0](convolve(spread, mirrored)))

    first, last = hand()
    np.testing.assert_allclose(maps.skips[0], first, atol=1e-4)
    np.testing.assert_allclose(maps.rising[0], last, atol=1e-4)


def test_the_control_without_language_has_the_same_convolutions():
    shapes = {way: [c.kernel.shape for c in (*unet(way).down, *unet(way).up)] for way in ("both", "none", "top-down")}
    assert shapes["both"] == shapes["none"] == shapes["top-down"]
    for one, two in zip(unet("both").down, unet("top-down").down, strict=True):
        np.testing.assert_array_equal(one.kernel, two.kernel)
    for one, two in zip(unet("both").up_filters, unet("top-down").up_filters, strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, two)
    branch = unet("bottom-up").visual
    assert [c.kernel.shape for c in branch] == [(3, 3, 3, 4), (3, 3, 4, 4)]


@pytest.mark.parametrize("conditioning", ["both", "bottom-up"])
def test_maps_and_logits_have_the_sizes_that_are_written(conditioning):
    """Of odd sizes and widths of their own; nothing is computed for it."""
    settings = {"depth": 2, "width": 5, "kernel_size": 3, "conditioning": conditioning}
    network = drawn(lambda key: g.LanguageUNet(key, 3, 6, **settings))
    shape = lambda *sizes, kind=jnp.float32: jax.ShapeDtypeStruct(sizes, kind)  # noqa: E731
    assert jax.eval_shape(network, shape(2, 9, 12, 3), shape(2, 6)).shape == (2, 9, 12, 5)
    whole = drawn(lambda key: g.Segmenter(key, 7, inputs=1, text_size=4, stem_width=3, **settings))
    said = shape(2, 4, kind=jnp.int32), shape(2, kind=jnp.int32)
    found = jax.eval_shape(whole, shape(2, 17, 14, 1), *said)
    assert [logits.shape for logits in found] == [(2, 5, 4), (2, 9, 7), (2, 17, 14)]


@pytest.mark.slow
def test_what_comes_out_is_as_large_as_what_went_in():
    network = unet("both", depth=3)
    for height in range(17, 65, 3):  # every remainder of 8
        found = jax.eval_shape(network, jnp.zeros((1, height, 81 - height, 3)), jnp.zeros((1, 6)))
        assert found.shape == (1, height, 81 - height, 4)


def test_examples_do_not_see_each_other():
    network = unet("both", depth=2)
    run = eqx.filter_jit(lambda maps, text: network(maps, text))
    whole = run(MAPS, TEXT)
    np.testing.assert_allclose(run(MAPS[::-1], TEXT[::-1])[::-1], whole, atol=1e-5)
    stranger = MAPS.copy()
    stranger[1] *= 3
    np.testing.assert_allclose(run(stranger, TEXT)[0], whole[0], atol=1e-5)


def test_locations_are_the_corners_and_centres_of_cells():
    found = np.asarray(g.add_locations(jnp.zeros((1, 4, 5, 2))))[0, :, :, 2:]
    np.testing.assert_allclose(found[0, 0], [-1, -1, -0.6, -0.5, -0.8, -0.75, 0.2, 0.25], atol=1e-6)
    np.testing.assert_allclose(found[3, 4], [0.6, 0.5, 1, 1, 0.8, 0.75, 0.2, 0.25], atol=1e-6)


@pytest.mark.parametrize("modulation", ["filter", "concatenation"])
def test_every_weight_and_every_dropout_has_a_key_of_its_own(modulation):
    """On both ways and at every level; nothing but the keys is computed."""

    def train(key):
        made, asked = jax.random.split(key)
        network = g.Segmenter(made, 7, depth=2, width=4, text_size=4, kernel_size=3, modulation=modulation)
        network(jnp.ones((2, 8, 9, 3)), jnp.ones((2, 4), int), jnp.array([3, 4]), key=asked)

    with KeyRecorder() as recorder:
        jax.jit(train)(jax.random.key(0))
        jax.effects_barrier()
    assert recorder.reused() == []
    assert sum(counts["bernoulli"] for counts in recorder.uses.values()) == 2 * 2


@pytest.mark.slow
def test_the_segmenter_learns_what_the_phrase_says():
    """The left or the right half, of grey images: what no network can know without the phrase."""
    words = g.Vocabulary.of(["the left half", "the right half"])
    phrases = ["the left half", "the right half"] * 8
    masks = np.zeros((16, 8, 8), bool)
    masks[::2, :, :4] = masks[1::2, :, 4:] = True
    examples = g.make_examples(RNG.uniform(0.4, 0.6, size=(16, 8, 8, 3)), phrases, masks, words)
    network = g.Segmenter(jax.random.key(0), len(words), depth=1, width=4, text_size=8, kernel_size=3)
    network, info = g.fit(jax.random.key(1), network, examples, 120, batch=8, learning_rate=0.03)
    probabilities = g.predict(network, examples.images, words.encode(phrases))
    counts = g.count_masks(*g.overlaps(probabilities, masks))
    assert float(info.losses[-1]) < 0.3 * float(info.losses[0])
    assert info.cost == 960
    assert int(info.status) == 0
    assert counts.mean_iou()[9] > 0.9
