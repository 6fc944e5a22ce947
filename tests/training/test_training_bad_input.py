"""Wrong settings and blocks: field, rule, value and remedy, before anything is compiled."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest

from laureate.layers import BatchNorm
from laureate.training import (
    Boundary,
    Chain,
    Dense,
    Fixed,
    Frozen,
    Hebbian,
    LocalizedTraining,
    Normalised,
    NormRule,
    OfEpoch,
    Oja,
    Plateau,
    RandomDirection,
    Staircase,
    WeakSupervision,
    step_cost,
    train,
)

KEY = jax.random.key(0)


def dense():
    return Dense(jnp.ones((3, 3)))


def trainer(schedule=None, rule=None, optimiser=None, **more):
    return LocalizedTraining(
        Fixed(1) if schedule is None else schedule,
        Hebbian() if rule is None else rule,
        optax.sgd(0.1) if optimiser is None else optimiser,
        **more,
    )


def begun(blocks=None, **more):
    method = trainer(**more)
    return method, method.init(KEY, [dense(), dense(), dense()] if blocks is None else blocks)


SETTINGS = {
    "schedule": (lambda: trainer(schedule=3), r"schedule must be callable; got 3\. .*Staircase"),
    "rule": (lambda: trainer(rule="hebb"), r"rule must be a local rule; got 'hebb'\. .*Hebbian"),
    "optimiser": (lambda: trainer(optimiser=0.1), r"optimiser must be an Optax optimiser; got 0\.1\. .*optax"),
    "local_rate": (lambda: trainer(local_rate=-1.0), r"local_rate must be finite and >= 0; got -1\.0"),
    "local_rate inf": (lambda: trainer(local_rate=float("inf")), r"local_rate must be finite and >= 0; got inf"),
    "normalise": (lambda: trainer(normalise="l3"), r"normalise must be 'l2', 'l1', 'max' or None; got 'l3'"),
    "relative": (
        lambda: trainer(normalise=None),
        r"relative must be False without a norm; got True\. .*relative=False",
    ),
    "on_unsupported": (
        lambda: trainer(on_unsupported="skip"),
        r"on_unsupported must be 'error' or 'freeze'; got 'skip'",
    ),
    "batch_statistics": (
        lambda: trainer(batch_statistics=True),
        r"batch_statistics must be 'update', 'freeze' or None",
    ),
    "rising": (lambda: WeakSupervision(rising=float("nan")), r"WeakSupervision\.rising must be finite; got nan"),
    "window": (lambda: WeakSupervision(window=0.5), r"WeakSupervision\.window must be >= 1; got 0\.5"),
    "hold": (lambda: RandomDirection(hold=-1), r"RandomDirection\.hold must be an integer >= 0; got -1"),
    "decay": (lambda: Oja(-1.0), r"Oja\.decay must be >= 0; got -1\.0"),
    "fixed": (lambda: Fixed(-1), r"Fixed\.boundary must be an integer >= 0; got -1"),
    "start": (lambda: Staircase(start=-1), r"Staircase\.start must be an integer >= 0; got -1"),
    "every": (lambda: Staircase(every=0), r"Staircase\.every must be an integer >= 1; got 0"),
    "shift": (lambda: Staircase(shift=1.5), r"Staircase\.shift must be an integer >= 1; got 1\.5"),
    "bound": (lambda: Staircase(max_boundary=-1), r"Staircase\.max_boundary must be an integer >= 0; got -1"),
    "fraction": (lambda: NormRule(fraction=0.0), r"NormRule\.fraction must be > 0; got 0\.0"),
    "norm window": (lambda: NormRule(window=0), r"NormRule\.window must be an integer >= 1; got 0"),
    "norm max boundary": (
        lambda: NormRule(max_boundary=True),
        r"NormRule\.max_boundary must be an integer >= 0; got True",
    ),
    "tolerance": (lambda: Plateau(tolerance=-0.1), r"Plateau\.tolerance must be >= 0; got -0\.1"),
    "plateau shift": (lambda: Plateau(shift=0), r"Plateau\.shift must be an integer >= 1; got 0"),
    "dense": (lambda: Dense(jnp.ones(3)), r"Dense\.drawn must be a matrix"),
    "chain": (lambda: Chain(()), r"Chain\.layers must be one or more callables"),
    "chain of a number": (lambda: Chain((jax.nn.relu, 3.0)), r"Chain\.layers must be one or more callables"),
    "momentum": (lambda: Normalised(dense(), BatchNorm(3), momentum=1.0), r"Normalised\.momentum must be in \[0, 1\)"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name):
    make, message = SETTINGS[name]
    with pytest.raises(ValueError, match=message):
        make()


def tied():
    first = dense()
    return [first, dense(), Chain((first, jax.nn.relu))]


class Recurrent(eqx.Module):
    """A cell whose weights belong to no linear layer."""

    cell: eqx.nn.GRUCell

    def __call__(self, inputs):
        return jax.vmap(self.cell)(inputs, inputs)


BLOCKS = {
    "one": (lambda: begun([dense()]), r"blocks must be two or more; got 1"),
    "array": (
        lambda: begun([dense(), jnp.ones(3), dense()]),
        r"blocks must be callable; got \['Dense', 'Array.*PerExample",
    ),
    "tied": (
        lambda: begun(tied()),
        r"blocks must not share arrays; got one of shape \[3, 3\] in blocks 0 and 2\..*one block",
    ),
    "attention": (
        lambda: begun([eqx.nn.MultiheadAttention(1, 3, key=KEY), dense()]),
        r"made of linear layers and normalisations; got \['0 \(MultiheadAttention.*on_unsupported='freeze'",
    ),
    "recurrent": (
        lambda: begun([dense(), Recurrent(eqx.nn.GRUCell(3, 3, key=KEY)), dense()]),
        r"got \['1 \(Recurrent: \.cell\.weight_ih, .*local\(key, step, rule, inputs\)",
    ),
    "norm": (lambda: begun([eqx.nn.LayerNorm(3), dense()]), r"got \['0 \(LayerNorm: no linear layer\)'\]"),
    "statistics": (
        lambda: begun([Normalised(dense(), BatchNorm(3)), dense()]),
        r"batch_statistics must be 'update' or 'freeze'; got None\. Blocks \[0\] keep running statistics",
    ),
    "beyond": (
        lambda: begun(schedule=Fixed(3)),
        r"schedule must be within 0 and 2, .*got 3\. The last block always learns",
    ),
    "negative": (lambda: begun(schedule=lambda history, n: -1), r"schedule must be within 0 and 2, .*got -1"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_and_first_boundaries(name):
    make, message = BLOCKS[name]
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        make()


@pytest.mark.parametrize("boundary", [1.0, True, jnp.asarray(1)])
def test_a_boundary_that_is_no_python_int(boundary):
    with pytest.raises(TypeError, match=r"must be a Python int; got .*move it between compiled steps"):
        begun(schedule=lambda history, n: boundary)


def test_a_traced_boundary():
    method, state = begun()
    arrays, rest = eqx.partition(state, eqx.is_array)
    with pytest.raises(TypeError, match="must be a Python int"):
        jax.jit(lambda arrays, boundary: method.move(eqx.combine(arrays, rest), boundary)[0].step)(arrays, 2)
    with pytest.raises(TypeError, match="must be a Python int"):
        Boundary(1.5)


def test_a_schedule_that_goes_back_or_beyond_at_the_end_of_an_epoch():
    for later, message in ((0, r"non-decreasing; got 0 after 1\. Set monotone=False"), (3, "within 0 and 2")):
        method, state = begun(schedule=OfEpoch([1, later].__getitem__))
        with pytest.raises(ValueError, match=message):
            method.end_epoch(state, ())
    method, state = begun(schedule=OfEpoch([1, 0].__getitem__), monotone=False)
    assert method.end_epoch(state, ())[0].boundary.index == 0
    with pytest.raises(ValueError, match="within 0 and 2"):
        step_cost(method, state.blocks, jnp.ones((4, 3)), jnp.zeros(4, int), 3)


def test_a_loss_that_is_no_number():
    method, state = begun(loss=lambda outputs, targets: jnp.sum(outputs, axis=1))
    with pytest.raises(ValueError, match=r"loss must be a scalar; got \(4,\)\. .*mean over the batch"):
        method.step(state, jnp.ones((4, 3)), jnp.zeros(4, int))


@pytest.mark.parametrize("batch", [0, 5])
def test_batches_that_do_not_fit(batch):
    method, state = begun()
    with pytest.raises(ValueError, match=rf"train\.batch must be within 1 and 4, the examples; got {batch}"):
        train(KEY, method, state, jnp.ones((4, 3)), jnp.zeros(4, int), batch=batch)


def test_a_block_that_names_what_it_does_not_have():
    class Wrong(eqx.Module):
        layer: Dense

        def __call__(self, inputs):
            return self.layer(inputs)

        def local(self, key, step, rule, inputs):
            return self(inputs), self, {".other": jnp.ones((3, 3))}

    method, state = begun([Wrong(dense()), dense()])
    with pytest.raises(ValueError, match=r"Wrong\.local must name arrays of its own by path; got \['\.other'\]"):
        method.step(state, jnp.ones((4, 3)), jnp.zeros(4, int))


def test_the_last_block_may_be_of_any_kind():
    begun([dense(), Recurrent(eqx.nn.GRUCell(3, 3, key=KEY))], rule=Hebbian())
    begun([Recurrent(eqx.nn.GRUCell(3, 3, key=KEY)), dense()], rule=Frozen())
    begun([dense(), Normalised(dense(), BatchNorm(3))])  # it is never local, so nothing is to be said of it


def test_a_trainer_may_be_made_inside_a_compiled_function():
    def factor(loss):
        return WeakSupervision(rising=-1.0, window=2.0)(loss, jnp.asarray(0.5))

    assert jax.eval_shape(factor, jnp.asarray(0.4)).shape == ()
