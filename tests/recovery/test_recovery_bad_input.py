"""Wrong input is answered at once, by field, rule, value and remedy."""

import jax
import jax.numpy as jnp
import lineax
import numpy as np
import optax
import pytest
from dictionaries import random_dictionary
from scipy.sparse.linalg import aslinearoperator

from laureate.lab.claim import Settings
from laureate.recovery import (
    ALISTA,
    FISTA,
    ISTA,
    LISTACP,
    BernoulliGaussian,
    ConvALISTA,
    HyperLISTA,
    SparseCoder,
    SupportSchedule,
    UnrolledCoherence,
    analytic_conv_weight,
    analytic_weight,
    as_dictionary,
    certified_schedule,
    fit,
    fit_encoder,
    learn_dictionary,
    learn_filters,
    perturb,
)

D = random_dictionary(4, 6).astype(np.float32)
ZERO = np.where(np.arange(6) == 2, 0, D)
FLAT = np.repeat(D[:1], 4, axis=0)
NAN = np.where(np.arange(6) == 2, np.nan, D)
FILTERS = np.ones((2, 3, 3), np.float32) / 3
KEY = jax.random.key(0)
WRONG = {
    "zero column": (lambda: ALISTA(ZERO), ValueError, "no zero column; column 2 is zero"),
    "a vector": (lambda: as_dictionary(D[0]), ValueError, r"a matrix \[N, M\].*got an array of shape \(6,\)"),
    "not finite": (lambda: ALISTA(NAN), FloatingPointError, "D must be finite; 4 entries"),
    "signals not finite": (lambda: ALISTA(D)(np.full(4, np.nan)), FloatingPointError, "b must be finite; 4"),
    "singular": (lambda: analytic_weight(FLAT), np.linalg.LinAlgError, r"singular \(rank 1 < 4\).*ridge"),
    "singular operator": (
        lambda: analytic_weight(lineax.MatrixLinearOperator(jnp.asarray(D).at[3].set(0))),
        np.linalg.LinAlgError,
        r"singular \(rank 3 < 4\).*ridge",
    ),
    "samples as columns": (lambda: ALISTA(D)(np.ones((4, 9))), ValueError, r"samples as rows.*\(4, 9\).*Pass b.T"),
    "no signals": (lambda: ALISTA(D)(np.ones((2, 5))), ValueError, r"\[..., 4\], samples as rows"),
    "no layers": (lambda: ALISTA(D, num_layers=0), ValueError, "ALISTA.num_layers must be an integer >= 1; got 0"),
    "half a layer": (lambda: FISTA(D, num_layers=1.5), ValueError, "FISTA.num_layers must be an integer >= 1; got 1.5"),
    "negative penalty": (lambda: ISTA(D, penalty=-1.0), ValueError, "ISTA.penalty must be >= 0; got -1.0"),
    "no step": (lambda: ISTA(D, lipschitz_constant=0.0), ValueError, "ISTA.lipschitz_constant must be > 0; got 0.0"),
    "negative threshold": (lambda: ALISTA(D, theta=-0.1), ValueError, "ALISTA.theta must be of .* >= 0; got -0.1"),
    "negative gamma": (lambda: ALISTA(D, gamma=-1.0), ValueError, "ALISTA.gamma must be of .* > 0; got -1.0"),
    "thresholds of other layers": (
        lambda: ALISTA(D, num_layers=3, theta=[0.1, 0.2]),
        ValueError,
        r"ALISTA.theta must be of one of the shapes \(\), \(3,\); got \(2,\). Give one number, or one a layer",
    ),
    "thresholds of other entries": (
        lambda: ALISTA(D, num_layers=3, threshold="coordinate", theta=np.ones((3, 5))),
        ValueError,
        r"ALISTA.theta must be of one of the shapes .*\(3, 6\); got \(3, 5\)",
    ),
    "steps of other layers": (
        lambda: ALISTA(D, num_layers=3, gamma=np.ones(4)),
        ValueError,
        r"ALISTA.gamma must be of one of the shapes .*got \(4,\)",
    ),
    "complex": (lambda: ALISTA(D + 1j * D), ValueError, "D must be real; got complex64. Stack real and imaginary"),
    "complex operator": (
        lambda: as_dictionary(aslinearoperator(D + 1j * D)),
        ValueError,
        "D must be real; got complex.*Stack real and imaginary",
    ),
    "complex operator of one's own": (
        lambda: as_dictionary(Settings(matvec=abs, rmatvec=abs, shape=(4, 6), dtype=np.complex64)),
        ValueError,
        "D must be real; got complex64",
    ),
    "ridge of the iteration": (
        lambda: analytic_weight(D, "iterative", ridge=0.1),
        ValueError,
        "ridge must be 0 without the closed form; got 0.1. method='iterative' has none",
    ),
    "no dictionaries": (
        lambda: fit(KEY, ALISTA(D), BernoulliGaussian(6), optimiser=optax.sgd(0.1), num_dictionaries=0),
        ValueError,
        "fit.num_dictionaries must be >= 1; got 0",
    ),
    "transposed weight": (lambda: ALISTA(D, D.T), ValueError, r"D's shape \(4, 6\); got \(6, 4\). Pass its transpose"),
    "kind of threshold": (lambda: ALISTA(D, threshold="one"), ValueError, "'scalar' or 'coordinate'; got 'one'"),
    "method": (lambda: analytic_weight(D, "exact"), ValueError, "'closed_form', 'iterative' or 'minimax'"),
    "negative ridge": (lambda: analytic_weight(D, ridge=-1.0), ValueError, "ridge must be >= 0; got -1.0"),
    "more than all": (lambda: SupportSchedule(p=101), ValueError, "SupportSchedule.p must be within 0 and 100"),
    "p_max below p": (lambda: SupportSchedule(5, 2), ValueError, "p_max must be within p = 5 and 100"),
    "start": (lambda: LISTACP(D, start="zero"), ValueError, "LISTACP.start must be 'dictionary' or 'analytic'"),
    "drifted shape": (lambda: ALISTA(D).at(D[:3]), ValueError, r"must have the shape \(4, 6\); got \(3, 6\)"),
    "drifted weight": (lambda: ALISTA(D).at(D, "new"), ValueError, "'closed_form', 'stale' or a function of D"),
    "decoder": (lambda: ALISTA(D).at(D, decoder="new"), ValueError, "'perturbed' or 'nominal'; got 'new'"),
    "numbers of HyperLISTA": (lambda: HyperLISTA(D, c=(1.0, 2.0)), ValueError, "HyperLISTA.c must be three numbers"),
    "entries of HyperLISTA": (
        lambda: HyperLISTA(D, max_count=7),
        ValueError,
        "HyperLISTA.max_count must be within 0 and 6; got 7",
    ),
    "nobody's sparsity": (lambda: certified_schedule(D, D, sparsity=0), ValueError, "sparsity must be >= 1; got 0"),
    "stale weight": (
        lambda: certified_schedule(D, 2 * D, sparsity=1),
        ValueError,
        "w_mᵀ d_m = 1; one is off by 1. Compute it anew",
    ),
    "no steps": (
        lambda: fit(KEY, ALISTA(D), BernoulliGaussian(6), optimiser=optax.sgd(0.1), num_steps=0),
        ValueError,
        "fit.num_steps must be >= 1; got 0",
    ),
    "mode": (
        lambda: fit(KEY, ALISTA(D), BernoulliGaussian(6), optimiser=optax.sgd(0.1), mode="all"),
        ValueError,
        "'end_to_end' or 'greedy'; got 'all'",
    ),
    "unpaired": (
        lambda: fit(KEY, ALISTA(D), (np.ones((2, 4)), np.ones((3, 6))), optimiser=optax.sgd(0.1)),
        ValueError,
        "pair signals with targets; got 2 and 3",
    ),
    "density": (lambda: BernoulliGaussian(6, density=2.0), ValueError, "density must be within 0 and 1; got 2.0"),
    "drift": (lambda: perturb(KEY, D, -1.0), ValueError, "perturb.sigma must be >= 0; got -1.0"),
    "encoder": (
        lambda: UnrolledCoherence(D, num_steps=0),
        ValueError,
        "UnrolledCoherence.num_steps must be >= 1; got 0",
    ),
    "even filters": (lambda: analytic_conv_weight(np.ones((2, 4, 4))), ValueError, "odd size D.*got 4. Pad them"),
    "filters": (lambda: ConvALISTA(np.ones((3, 3)), (8, 8)), ValueError, r"filters must be \[M, D, D\]"),
    "small circle": (lambda: analytic_conv_weight(FILTERS, 4), ValueError, "2D − 1 = 5 .*Theorem 3.*got 4"),
    "small image": (lambda: ConvALISTA(FILTERS, (2, 8)), ValueError, "at least the filters' 3"),
    "channels": (
        lambda: ConvALISTA(FILTERS, (5, 5))(np.ones((2, 5, 5, 3))),
        ValueError,
        "Code the channels one by one",
    ),
    "no images": (lambda: ConvALISTA(FILTERS, (5, 5))(np.ones((2, 6, 5))), ValueError, r"images \[..., 5, 5\]"),
    "atoms": (lambda: learn_dictionary(KEY, jnp.ones((3, 2)), 0), ValueError, "atoms must be >= 1; got 0"),
    "no rounds": (
        lambda: learn_filters(KEY, jnp.ones((2, 5, 5)), 2, 3, num_rounds=0),
        ValueError,
        "learn_filters.num_rounds must be >= 1; got 0",
    ),
    "no pixels": (
        lambda: learn_filters(KEY, jnp.ones((2, 5, 5)), 2, 0),
        ValueError,
        "learn_filters.side must be >= 1; got 0",
    ),
    "parts of a batch": (
        lambda: fit(
            KEY,
            ALISTA(D),
            BernoulliGaussian(6),
            optimiser=optax.sgd(0.1),
            batch=10,
            redraw=lambda key, solver: solver,
        ),
        ValueError,
        r"fit.batch must be a multiple of num_dictionaries \(4\); got 10. They share a batch in equal parts",
    ),
    "columns as atoms": (
        lambda: SparseCoder(D).fit(np.random.default_rng(0).normal(size=(5, 4))),
        ValueError,
        r"\[n_components, 4\], an atom a row; got \(4, 6\)",
    ),
    "atoms of the coder": (
        lambda: SparseCoder(n_components=0).fit(np.random.default_rng(0).normal(size=(5, 4))),
        ValueError,
        "SparseCoder.n_components must be None or >= 1; got 0",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_answered(name):
    call, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        call()


def test_what_works_but_should_be_known_warns():
    with pytest.warns(UserWarning, match="norm 1.*normalise=True"):
        ISTA(2 * D, num_layers=1)
    with pytest.warns(UserWarning, match=r"Theorem 1 covers s <= \d+ for this D \(coherence .*s = 5 requested"):
        certified_schedule(D, analytic_weight(D), sparsity=5, gamma=0.05)
    with pytest.warns(UserWarning, match="weight='closed_form'"):
        fit_encoder(KEY, UnrolledCoherence(D), jnp.asarray(D), 3.0, optimiser=optax.sgd(0.0), num_steps=1, batch=1)
    wide = jnp.asarray(random_dictionary(3, 2001), jnp.float32)
    with pytest.warns(UserWarning, match="single precision"):
        analytic_weight(wide)
