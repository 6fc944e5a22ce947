"""Bad input: the field, the rule, the value and the remedy; and what comes from files."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import interpretation as i
from laureate.interpretation import activations
from networks import drawn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3))
KEY = jax.random.key(0)
MLP = drawn(lambda key: eqx.nn.MLP(3, 2, 4, 1, key=key))
DROPOUT = drawn(lambda key: eqx.nn.Sequential([eqx.nn.Linear(3, 4, key=key), eqx.nn.Dropout(0.5)]))
PROBE = i.GaussianProbe(jnp.asarray(np.zeros((2, 3))), jnp.asarray(np.ones((2, 3))), jnp.array([0.5, 0.5]))


def two(moments_of=(3, 3), tokens=None):
    stats = i.RunningMoments(moments_of)
    rows = X if tokens is None else X[:tokens]
    return stats.finish(stats.update(stats.init(), [rows] * len(moments_of))[0])


class Looped(eqx.Module):
    """A part that is called inside a loop of jax."""

    cell: eqx.nn.Linear

    def __call__(self, x):
        return jax.lax.scan(lambda h, _: (self.cell(h), None), x, length=3)[0]


def with_nan():
    y = X.copy()
    y[40, 2] = np.nan
    return y


WRONG = {
    "one model": (lambda: i.rank_neurons([X]), "at least 2 models; got 1. Cross-model ranking needs another model"),
    "one model's moments": (lambda: i.max_corr(two((3,)), 0), "at least 2 models; got 1"),
    "token counts": (
        lambda: i.rank_neurons({"a": X, "b": X[:90]}),
        r"equally many tokens; got {'a': 100, 'b': 90}. Are words cut into other pieces",
    ),
    "sentences": (lambda: i.rank_neurons([X[None], X[None]]), r"\[tokens, units\] .*got \(1, 100, 3\). Flatten"),
    "nan": (
        lambda: i.rank_neurons({"a": X, "b": with_nan()}, chunk=16),
        "must be finite; got nan in model 'b', unit 2, token 40",
    ),
    "infinite": (lambda: i.rank_neurons([X, X / 0.0 * np.inf]), "must be finite; got"),
    "no tokens": (lambda: i.rank_neurons([X[:0], X[:0]]), r"got \(0, 3\)"),
    "no models": (lambda: i.collect([]), "at least one model; got 0"),
    "method": (lambda: i.rank_neurons([X, X], method="largest"), "method must be one of max-corr, min-corr"),
    "model": (lambda: i.rank_neurons([X, X], model=2), r"model must be among \[0, 1\]; got 2"),
    "model name": (lambda: i.rank_neurons({"a": X, "b": X}, model="c"), "among .*got 'c'"),
    "weights": (lambda: i.rank_neurons([X], method="output-norm"), r"weights must be \[3, outputs\]"),
    "key": (lambda: i.rank_neurons([X], method="random"), "key must be given"),
    "chunk": (lambda: i.collect([X], chunk=0), "chunk must be >= 1; got 0"),
    "mask": (lambda: i.collect([X], mask=np.ones(3, bool)), r"mask must be one entry a token, \[100\]; got \(3,\)"),
    "sizes": (lambda: i.RunningMoments((3, 0)), r"sizes must be at least one size, all >= 1; got \(3, 0\)"),
    "units": (lambda: i.RunningMoments((2,)).update(i.RunningMoments((2,)).init(), [X]), r"with \(2,\) units"),
    "subset": (lambda: two().subset((0, 0)), r"each once; got \(0, 0\)"),
    "aggregate": (lambda: i.linear_regression(two(), 0, aggregate="sum"), "one of mean, min, max; got 'sum'"),
    "ridge": (lambda: i.linear_regression(two(), 0, ridge=-1.0), "ridge must be >= 0; got -1.0"),
    "svcca tokens": (lambda: i.svcca(two(tokens=3), 0, 1), "more tokens than units; got 3. .* set ridge > 0"),
    "svcca itself": (lambda: i.svcca(two(), 0, 0), "other must be another model; got 0"),
    "variance": (lambda: i.svcca(two(), 0, 1, variance=1.5), r"variance must be in \(0, 1\]; got 1.5"),
    "keep": (lambda: i.keep_directions(jnp.eye(3), [True]), r"one entry a direction, \[3\]; got \(1,\)"),
    "fraction": (lambda: i.erasure_masks(jnp.arange(3), [1.5]), r"fractions must be in \[0, 1\]; got \[1.5\]"),
    "one fraction above": (lambda: i.erasure_masks(jnp.arange(3), [0.5, 1.5]), r"fractions must be in \[0, 1\]; got"),
    "one fraction below": (lambda: i.erasure_masks(jnp.arange(3), [-0.1, 0.5]), r"fractions must be in \[0, 1\]; got"),
    "order": (lambda: i.erasure_masks(jnp.array([0, 2, 2]), [0.5]), r"order must be each of the 3 units once; got"),
    "nothing shown": (lambda: i.collect([X], mask=np.zeros(100, bool)), "True for at least one token; got 0"),
    "end": (lambda: i.erasure_masks(jnp.arange(3), [0.5], "left"), "from_ must be 'top' or 'bottom'; got 'left'"),
    "too many units": (lambda: i.property_units(jnp.zeros(3), 4), r"num_units must be in 1..3; got 4"),
    "width": (lambda: i.SetUnits(jnp.ones(2, bool))(jnp.ones((4, 3))), "units must be 3 wide"),
    "donors": (lambda: i.Resample(jnp.ones(3, bool), jnp.ones((2, 3)))(jnp.ones((4, 3))), r"donors must be of shape"),
    "direction": (lambda: i.SetDirection(jnp.zeros(3), 1.0), "direction must be not 0"),
    "square": (lambda: i.Project(jnp.ones((2, 3))), r"matrix must be square; got \(2, 3\)"),
    "one class": (lambda: i.fit_probe(X, np.zeros(100, int)), "of all 2 classes; got .* A probe needs"),
    "labels": (lambda: i.fit_probe(X, np.full(100, 5)), r"labels must be in 0..1"),
    "label type": (lambda: i.fit_probe(X, np.zeros(100)), "labels must be whole numbers"),
    "label count": (lambda: i.explained_variance(X, np.zeros(7, int), 2), r"one a token, \[100\]"),
    "no property": (lambda: i.mean_difference(X, np.zeros(100, int)), "labels must be 1 somewhere; got 0"),
    "change": (lambda: i.control(PROBE, [0], (1, 1)), r"two different classes in 0..1; got \(1, 1\)"),
    "class above": (lambda: i.control(PROBE, [0], (0, 2)), r"two different classes in 0..1; got \(0, 2\)"),
    "class below": (lambda: i.control(PROBE, [0], (-1, 0)), r"two different classes in 0..1; got \(-1, 0\)"),
    "control units": (lambda: i.control(PROBE, [3], (0, 1)), r"numbers in 0..2; got \[3\]"),
    "permutations": (lambda: i.permutation_null(KEY, [X, X], 0, num_permutations=0), "num_permutations must be >= 1"),
    "block": (lambda: i.permutation_null(KEY, [X, X], 0, block=51), "at least two blocks to exchange; got 51"),
    "groups": (lambda: i.score_interval(i.RunningMoments((3,)), [], 0), "at least 3 states; got 0"),
    "lists": (lambda: i.rank_agreement([1, 2], [1, 2, 3]), "two lists of one length"),
    "dropout": (
        lambda: i.record(lambda m, x, key: m(x, key=key), DROPOUT, "layers.1", jnp.ones((5, 3)), KEY),
        "the same for every key; .* Turn off dropout",
    ),
    "dropout behind the part": (
        lambda: i.record(lambda m, x, key: m(x, key=key), DROPOUT, "layers.0", jnp.ones((5, 3)), KEY),
        "the same for every key; .* Turn off dropout",
    ),
    "loop": (
        lambda: i.record(lambda m, x: m(x), Looped(eqx.nn.Linear(3, 3, key=KEY)), "cell", jnp.ones((2, 3))),
        "outside jax's loops; got 'cell'. Record a part that contains the loop",
    ),
    "called twice": (
        lambda: i.record(lambda m, x: m(m(x)[jnp.array([0, 1, 1])]), MLP, "layers.0", jnp.ones((2, 3))),
        "called once for an input .*; got 2",
    ),
    "not called": (lambda: i.record(lambda m, x: x, MLP, "layers.0", jnp.ones((2, 3))), "called once for an input"),
    "file": (lambda: i.open_activations("nowhere.npz"), "path must be a file; got 'nowhere.npz'"),
    "mask of sentences": (lambda: i.flatten_tokens(np.ones((2, 3, 4)), np.ones(2)), r"of shape \(2, 3\); got \(2,\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_says_what_and_why(name):
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message), np.errstate(all="ignore"):
        call()


def test_a_path_that_is_not_there_lists_those_that_are():
    for where in ("layers.7", "weights", "layers"):
        told = r".where must be the path of a part.*got '.*'. There are: .*layers.0, layers.1"
        with pytest.raises(KeyError, match="insert" + told):
            i.insert(MLP, where, lambda h: h)
        with pytest.raises(KeyError, match="record" + told):
            i.record(lambda m, x: m(x), MLP, where, jnp.ones((2, 3)))


def test_few_tokens_warn_with_what_chance_gives():
    with pytest.warns(i.FewTokensWarning, match=r"20 tokens for 3 units: .* about 0.4"):
        i.rank_neurons([X[:20], X[:20]])


@pytest.mark.parametrize("method", ["max-corr", "min-corr", "linear-regression"])
def test_tokens_are_few_below_ten_a_unit_of_the_widest_model_and_chance_is_one_at_most(method, monkeypatch):
    """Those that the mask leaves are counted; nothing is computed here."""
    known = {"count": 0}
    monkeypatch.setattr(activations, "collect", lambda named, **_: (None, SimpleNamespace(**known)))
    monkeypatch.setitem(activations.AGREEMENT, method, lambda moments, model: model)
    models = [np.zeros((4, 2)), np.zeros((4, 5)), np.zeros((4, 3))]
    for count, told in (
        (49, "49 tokens for 5 units: .* about 0.31"),
        (2, "2 tokens for 5 units: .* about 1.00"),
        (0, "0 t"),
    ):
        known["count"] = count
        with pytest.warns(i.FewTokensWarning, match=told):
            assert i.rank_neurons(models, 2, method) == 2
    known["count"] = 50
    assert i.rank_neurons(models, 0, method) == 0  # a warning would be an error


def test_dropout_that_is_off_is_recorded():
    model = eqx.nn.inference_mode(DROPOUT)
    states, _ = i.record(lambda m, x, key: m(x, key=key), model, "layers.1", jnp.ones((5, 3)), KEY)
    assert states.shape == (5, 4)


def test_arrays_of_a_file_rank_as_those_in_memory(tmp_path):
    pytest.importorskip("safetensors")
    from safetensors.numpy import save_file

    models = {name: RNG.normal(size=(90, 3)).astype(np.float32) for name in ("a", "b")}
    models["b"][:, 1] += models["a"][:, 2]
    np.savez(tmp_path / "all.npz", **models)
    save_file(models, tmp_path / "all.safetensors")
    for name, values in models.items():
        np.save(tmp_path / f"{name}.npy", values)
    read = [
        i.open_activations(tmp_path / "all.npz"),
        i.open_activations(tmp_path / "all.safetensors"),
        i.open_activations(tmp_path / "a.npy") | i.open_activations(tmp_path / "b.npy"),
    ]
    expected = i.rank_neurons(models, model="b", chunk=40)
    for found in (i.rank_neurons(one, model="b", chunk=40) for one in read):
        np.testing.assert_array_equal(found.scores, expected.scores)
    assert (int(expected.order[0]), int(expected.partner_unit[1])) == (1, 2)
    masked = i.rank_neurons(models, mask=np.arange(90) < 60)
    shorter = i.rank_neurons({name: x[:60] for name, x in models.items()})
    np.testing.assert_allclose(masked.scores, shorter.scores, atol=1e-5)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "a.txt").write_text("1")
    with pytest.raises(ValueError, match=r"must be .npz, .npy or .safetensors"):
        i.open_activations(tmp_path / "a.txt")
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"pickle|Python objects"):
        i.open_activations(tmp_path / "objects.npy")


def test_sentences_become_tokens():
    values = RNG.normal(size=(3, 4, 2))
    mask = np.arange(4) < np.array([[4], [2], [3]])
    flat = i.flatten_tokens(values, mask)
    assert flat.shape == (9, 2)
    np.testing.assert_array_equal(flat[4:6], values[1, :2])
