"""What demanding users met: warnings that cry wolf, states of another temperature, data outside the domain."""

import warnings
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate._core import Status
from laureate.sampling import (
    Binary,
    Categorical,
    DiscreteLangevin,
    GibbsWithGradients,
    IncrementalGibbsWithGradients,
    LocalEnergy,
    Ordinal,
    PathAuxiliary,
    PersistentContrastiveDivergence,
    driver,
    run,
)
from laureate.sampling._layout import Layout


class Coins(eqx.Module):
    biases: jax.Array

    def __call__(self, x):
        return self.biases @ x

    def neighbours(self, site):
        return site[None]

    def site_differences(self, read, site):
        return ((1 - 2 * read(site)) * self.biases[site])[None]


# --- a gradient of zero ----------------------------------------------------------------------------------------------

DOMAINS = {
    "binary": (Binary(), np.zeros(4, bool), None),
    "ordinal": (Ordinal(-3, 3), np.zeros(4, int), None),
    "categorical": (Categorical(3), np.zeros(4, int), None),
    "masked": (Binary(), np.zeros(4, bool), np.array([False, True, True, False])),
}


@pytest.mark.parametrize("kind", [GibbsWithGradients, DiscreteLangevin, PathAuxiliary])
@pytest.mark.parametrize("name", DOMAINS)
def test_a_quadratic_that_starts_at_its_stationary_point_is_no_alarm(kind, name):
    domain, start, mask = DOMAINS[name]
    # its gradient at the start is zero, or the same for all categories, which is as good
    flat = lambda x: -jnp.sum(x**4 if name != "categorical" else (x[:, 0] - 1.0) ** 2 * x[:, 1])  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = kind(flat, domain, site_mask=mask).init(start)
    assert not np.asarray(state.differences)[np.isfinite(state.differences)].any()
    steps = lambda x: jnp.sum(jnp.floor(x * 0.7))  # noqa: E731
    with pytest.warns(UserWarning, match="gradient is zero"):
        kind(steps, domain, site_mask=mask).init(start)


def test_the_other_position_obeys_domain_and_masks():
    domain = {"a": Binary(), "b": Categorical(4), "c": Ordinal(2, 9)}
    start = {"a": jnp.zeros(20, bool), "b": jnp.full(30, 1), "c": jnp.full((5, 5), 4)}
    sites = {"a": np.ones(20, bool), "b": np.arange(30) % 2 == 0, "c": np.ones((5, 5), bool)}
    kinds = {"a": None, "b": np.tile([False, True, True, False], (30, 1)), "c": None}
    layout = Layout(domain, start)
    other = layout.scattered(start, sites, kinds)
    layout.check(other, kinds)
    for leaf in "abc":
        assert np.all((np.asarray(other[leaf]) == np.asarray(start[leaf])) | sites[leaf])
        assert len(np.unique(np.asarray(other[leaf]))) >= 2
    assert all(other[leaf].dtype == start[leaf].dtype for leaf in "abc")


def test_chains_that_start_flat_are_looked_at_elsewhere():
    """As one chain is, by the program that has begun them all."""
    start = np.zeros((2, 3), int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = driver._start(GibbsWithGradients(lambda x: -jnp.sum(x**4), Ordinal(-3, 3)), start)
    assert not np.asarray(state.differences)[np.isfinite(state.differences)].any()
    with pytest.warns(UserWarning, match="gradient is zero"):
        driver._start(GibbsWithGradients(lambda x: jnp.sum(jnp.floor(x * 0.7)), Ordinal(-3, 3)), start)


# --- numbers beyond the last, and masks ------------------------------------------------------------------------------


def test_moves_beyond_the_last_have_no_site_and_one_wrong_code_is_enough():
    """Sets of moves are padded by moves beyond the last, whose site is written nowhere. Codes inside jit are told."""
    domain = {"a": Binary(), "b": Categorical(3)}
    start = {"a": np.array([1, 0]), "b": np.array([0, 2])}
    layout, allowed = Layout(domain, start), {"a": None, "b": np.array([[1, 1, 1], [1, 0, 1]], bool)}
    # two chains a row: as they should be; then a code too large, one too small, one that the mask forbids
    rows = {leaf: np.tile(codes, (5, 2, 1)) for leaf, codes in start.items()}
    rows["a"][1, 0, 1], rows["a"][2, 1, 0], rows["b"][3, 1, 0], rows["b"][4, 0, 1] = 2, -1, 3, 1

    @jax.jit
    def run(moves, rows):
        sites, codes = layout.locate(jax.tree.map(jnp.asarray, start), moves)
        written = layout.write(jax.tree.map(jnp.asarray, start), sites[-9:], codes[-9:])
        return sites, written, jax.vmap(lambda row: layout.check_all("data", row, allowed))(rows)

    sites, written, sound = run(np.arange(8 + 9), rows)
    np.testing.assert_array_equal(sites, [0, 1, 2, 2, 2, 3, 3, 3, *[4] * 9])
    jax.tree.map(np.testing.assert_array_equal, written, start)
    np.testing.assert_array_equal(sound, [True, False, False, False, False])


# --- a kernel of one's own, over a mesh ------------------------------------------------------------------------------


class Summing(eqx.Module):
    """All random bits of a chain, added up: a state of a single leaf."""

    class State(NamedTuple):
        position: jax.Array

    class Info(NamedTuple):
        acceptance_rate: jax.Array
        cost: jax.Array
        status: jax.Array

    def init(self, position):
        return self.State(jnp.asarray(position))

    def step(self, key, state):
        bits = jax.random.bits(key)
        status = jnp.where(bits % 4 == 0, int(Status.DIVERGED), int(Status.OK)).astype(jnp.int32)
        info = self.Info((bits % 8) / 8, (bits % 5).astype(jnp.int32), status)
        return self.State(state.position + bits), info


@pytest.fixture(scope="module")
def drawn():
    """The bits of four such chains in the steps 3 to 8 of key 5."""
    own = lambda chain, step: jax.random.fold_in(jax.random.fold_in(jax.random.key(5), chain), step)  # noqa: E731
    bits = jax.jit(jax.vmap(jax.vmap(lambda chain, step: jax.random.bits(own(chain, step)), (None, 0)), (0, None)))
    return np.asarray(bits(np.arange(4), np.arange(3, 9)))


def assert_summed(found, drawn):
    """Chains that began at their number, kept every second step; and what their steps said, chain by chain."""
    position = np.arange(len(drawn), dtype=np.uint32)[:, None] + np.cumsum(drawn, axis=1, dtype=np.uint32)
    np.testing.assert_array_equal(found.samples, position[:, 1::2])
    np.testing.assert_array_equal(found.state.position, position[:, -1])
    np.testing.assert_array_equal(found.cost, (drawn % 5).sum(1))
    np.testing.assert_array_equal(found.num_nan, (drawn % 4 == 0).sum(1))
    np.testing.assert_allclose(found.acceptance_rate, (drawn % 8).mean(1) / 8)


@pytest.mark.parametrize("mesh", [None, "chains"])
def test_any_state_goes_on_and_tells_its_progress(drawn, mesh, tmp_path):
    told, key, file = [], jax.random.key(5), None if mesh else tmp_path / "run"
    mesh = mesh and jax.make_mesh((1,), (mesh,))
    more = {"first_step": 3, "thin": 2, "chunk": 4, "mesh": mesh, "progress": told.append, "checkpoint": file}
    # A status that is not OK is counted and told, in words that hold for every kernel.
    with pytest.warns(
        UserWarning, match=r"^\d steps met NaN, as log density or ratio, and did not go there; is f finite"
    ):
        found = run(key, Summing(), state=Summing.State(jnp.arange(3, dtype=jnp.uint32)), num_steps=6, **more)
    assert_summed(found, drawn[:3])
    assert [(one.done, one.total) for one in told] == [(4, 6), (6, 6)]


def test_a_kernel_is_asked_whether_a_state_is_its_own():
    class Particular(Summing):
        def check_state(self, state):
            raise ValueError(f"{state.position} is another's")

    with pytest.raises(ValueError, match=r"^7 is another's"):
        run(jax.random.key(5), Particular(), state=Summing.State(jnp.arange(7, 10, dtype=jnp.uint32)), num_steps=6)


@pytest.mark.filterwarnings("ignore:.*steps met NaN")
def test_each_of_two_devices_knows_the_chains_of_both(drawn, monkeypatch):
    """Devices there are none: ``vmap`` over the devices' parts has the same axis and gathers over it."""
    copies = []

    def over_parts(on_device, mesh, in_specs, out_specs, check_vma):
        def split(known, state):
            parts = jax.tree.map(lambda leaf: leaf.reshape(mesh.size, -1, *leaf.shape[1:]), state)
            one = jax.vmap(on_device, in_axes=(None, 0), axis_name=mesh.axis_names[0])
            state, seen, kept = one(known, parts)
            return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), state), seen, kept

        return split

    def advance(*given, real=driver._advance_over):
        state, everywhere = real(*given)
        copies.append(jax.tree.map(np.asarray, everywhere))
        return state, jax.tree.map(lambda leaf: leaf[0], everywhere)

    monkeypatch.setattr(jax, "shard_map", over_parts)
    monkeypatch.setattr(driver, "_advance_over", advance)
    monkeypatch.setattr(driver, "_place", lambda state, mesh: state)
    mesh = jax.sharding.AbstractMesh((2,), ("chains",))
    start = Summing.State(jnp.arange(4, dtype=jnp.uint32))
    found = run(jax.random.key(5), Summing(), state=start, num_steps=6, first_step=3, thin=2, chunk=6, mesh=mesh)
    assert_summed(found, drawn)
    for leaf in jax.tree.leaves(copies):
        np.testing.assert_array_equal(leaf[0], leaf[1])


# --- local energies --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_state_of_another_temperature_or_energy_is_refused():
    energy: LocalEnergy = Coins(jnp.array([2.0, -1.0, 3.0, 0.5]))
    kernel = IncrementalGibbsWithGradients(energy, Binary())
    first = run(jax.random.key(0), kernel, np.zeros((3, 4), int), 10)  # as many as in the others: the same program
    going_on = run(jax.random.key(0), kernel, state=first.state, first_step=10, num_steps=10)
    whole = run(jax.random.key(0), kernel, np.zeros((3, 4), int), 20)
    assert np.array_equal(going_on.samples, whole.samples[:, 10:])
    for other in (
        IncrementalGibbsWithGradients(energy, Binary(), inverse_temperature=0.5),
        IncrementalGibbsWithGradients(Coins(jnp.array([2.0, -1.0, 3.0, 0.6])), Binary()),
        IncrementalGibbsWithGradients(energy, Binary(), balancing="barker"),
        IncrementalGibbsWithGradients(energy, Binary(), site_mask=np.array([1, 1, 1, 0], bool)),
    ):
        with pytest.raises(ValueError, match=r"must be a state that this kernel made; got .* begin anew from its"):
            run(jax.random.key(0), other, state=first.state, first_step=10, num_steps=10)


# --- data outside the domain -----------------------------------------------------------------------------------------


def make_kernel(energy):
    return GibbsWithGradients(energy, Binary())


TRAINER = PersistentContrastiveDivergence(make_kernel, optax.adam(0.1), num_steps=2)


def test_data_outside_the_domain():
    energy, buffer = Coins(jnp.zeros(4)), jnp.zeros((6, 4), int)
    spins = jnp.where(jnp.eye(6, 4) > 0, 1, -1)
    with pytest.raises(ValueError, match=r"Divergence.buffer must hold values of Binary.*got \[-1\].*\(s \+ 1\) // 2"):
        TRAINER.init(energy, spins)
    with pytest.raises(ValueError, match=r"must hold integer or boolean codes"):
        TRAINER.init(energy, 1.0 * buffer)
    state = TRAINER.init(energy, buffer)
    with pytest.raises(ValueError, match=r"Divergence.data must hold values of Binary.*got \[2\]"):
        TRAINER.update(jax.random.key(0), state, buffer.at[2, 1].set(2))
    update = eqx.filter_jit(TRAINER.update)
    same, info = update(jax.random.key(0), state, spins)
    assert int(info.status) == Status.DIVERGED
    assert eqx.tree_equal(same.energy, state.energy)
    assert eqx.tree_equal(same.optimiser_state, state.optimiser_state)
    moved, info = update(jax.random.key(0), state, (spins + 1) // 2)
    assert int(info.status) == Status.OK
    assert np.asarray(moved.energy.biases).any()
