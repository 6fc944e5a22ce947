"""ALISTA beside FISTA at equal error, scikit-learn's ``sparse_encode``, and a training step beside PyTorch.

Dictionaries are the paper's: 250 × 500, Gaussian, unit columns; a tenth of a code is not zero.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.lab.running.comparison import Comparison, Side
from laureate.recovery import ALISTA, FISTA, LISTA, BernoulliGaussian, fit, nmse_db

__all__ = ["COMPARISONS", "Work"]

# Learned once by ``fit`` (end to end, Adam from 0.01 to 0, 600 steps of 64) on another dictionary of the same kind.
GAMMA = (
    0.9311,
    0.9314,
    0.9316,
    0.932,
    0.9322,
    0.9326,
    0.9327,
    0.9333,
    0.9333,
    0.9339,
    0.934,
    0.9344,
    0.9345,
    0.9349,
    0.9355,
    0.9787,
)
THETA = (
    0.1389,
    0.0075,
    0.1391,
    0.146,
    0.1393,
    0.1436,
    0.1395,
    0.1434,
    0.1393,
    0.1412,
    0.1385,
    0.1418,
    0.1374,
    0.14,
    0.1354,
    0.0328,
)
PENALTIES = (0.3, 0.1, 0.03, 0.01, 0.003)


class Work(NamedTuple):
    """What is measured: the dictionary's size, signals a batch, and at most how many iterations of FISTA."""

    rows: int = 250
    columns: int = 500
    signals: int = 1000
    most: int = 400
    layers: int = 16
    steps: int = 5


def problem(work: Work) -> tuple[Any, Any, Any]:
    """The dictionary, codes and signals."""
    matrix = jax.random.normal(jax.random.key(7), (work.rows, work.columns))
    matrix = matrix / jnp.linalg.norm(matrix, axis=0)
    codes = BernoulliGaussian(work.columns, density=0.1)(jax.random.key(8), work.signals)
    return matrix, codes, codes @ matrix.T


def trained(work: Work, matrix: Any) -> ALISTA:
    """ALISTA with the numbers that were learned."""
    return ALISTA(matrix, num_layers=work.layers, gamma=GAMMA[: work.layers], theta=THETA[: work.layers])


def solve_side(work: Work) -> Side:
    """Sixteen layers for the whole batch."""
    matrix, codes, signals = problem(work)
    solver = trained(work, matrix)
    program = eqx.filter_jit(solver)
    return Side(lambda: program(signals), note=f"NMSE {float(nmse_db(program(signals), codes)):.1f} dB")


def fista_side(work: Work) -> Side:
    """As many iterations as FISTA needs to be as near, with the penalty that needs fewest; an error if none does."""
    matrix, codes, signals = problem(work)
    wanted = float(nmse_db(eqx.filter_jit(trained(work, matrix))(signals), codes))
    few, few_codes = signals[:100], codes[:100]
    curve = eqx.filter_jit(lambda solver: jax.vmap(lambda x: nmse_db(x, few_codes))(solver.trace(few)))
    found = {}
    for penalty in PENALTIES:
        reached = np.flatnonzero(np.asarray(curve(FISTA(matrix, work.most, penalty=penalty))) <= wanted)
        if reached.size:
            found[penalty] = int(reached[0]) + 1
    if not found:
        raise RuntimeError(
            f"FISTA does not reach ALISTA's NMSE of {wanted:.1f} dB within {work.most} iterations at any penalty of "
            f"{PENALTIES}: there is no time to equal NMSE. Raise Work.most."
        )
    best = min(found, key=lambda penalty: found[penalty])
    needed = found[best]
    program = eqx.filter_jit(FISTA(matrix, needed, penalty=best))
    error = float(nmse_db(program(signals), codes))
    return Side(lambda: program(signals), note=f"{needed} iterations, penalty {best}, NMSE {error:.1f} dB")


def scikit_learn_side(work: Work) -> Side:
    """The same codes by coordinate descent on the lasso."""
    from sklearn.decomposition import sparse_encode

    matrix, codes, signals = problem(work)
    atoms, rows = np.asarray(matrix.T, np.float64), np.asarray(signals, np.float64)
    encode = lambda: sparse_encode(rows, atoms, algorithm="lasso_cd", alpha=0.01, max_iter=100)  # noqa: E731
    found = float(nmse_db(jnp.asarray(encode()), codes))
    return Side(encode, note=f"lasso_cd, penalty 0.01, 100 sweeps at most, NMSE {found:.1f} dB")


def training_side(work: Work) -> Side:
    """Training steps of LISTA with Adam, all weights of all layers; the network goes on from call to call."""
    matrix, _, _ = problem(work)
    prior = BernoulliGaussian(work.columns, density=0.1)
    arrays, rest = eqx.partition(LISTA(matrix, work.layers), eqx.is_array)

    @jax.jit
    def steps(key, arrays):
        trained, losses = fit(key, eqx.combine(arrays, rest), prior, optimiser=optax.adam(1e-4), num_steps=work.steps)
        return eqx.filter(trained, eqx.is_array), losses

    turn = 0

    def run():
        nonlocal arrays, turn
        turn += 1
        arrays, losses = steps(jax.random.key(turn), arrays)
        return losses

    return Side(run, 1 / work.steps)


def torch_side(work: Work) -> Side:
    """The same in PyTorch: LISTA as in Gregor and LeCun, autograd, Adam, fresh signals."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)

    torch.set_num_threads(1)
    torch.manual_seed(0)
    matrix = torch.from_numpy(np.array(problem(work)[0]))
    constant = 1.001 * torch.linalg.matrix_norm(matrix, 2) ** 2
    eye = torch.eye(work.columns)
    parameters = []
    for _ in range(work.layers):
        start = matrix.T / constant, eye - matrix.T @ matrix / constant, 0.4 / constant
        parameters.append([torch.nn.Parameter(value.clone()) for value in start])
    optimiser = torch.optim.Adam([one for layer in parameters for one in layer], 1e-4)

    def step():
        codes = torch.randn(64, work.columns) * (torch.rand(64, work.columns) < 0.1)
        signals, x = codes @ matrix.T, torch.zeros_like(codes)
        for from_signal, from_code, theta in parameters:
            v = signals @ from_signal.T + x @ from_code.T
            x = torch.sign(v) * torch.relu(v.abs() - theta)
        loss = ((x - codes) ** 2).sum() / 64
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    return Side(lambda: [float(step()) for _ in range(work.steps)][-1], 1 / work.steps)


COMPARISONS = (
    Comparison(
        work="a batch of 1,000 signals, D of 250 × 500, to equal NMSE",
        peer="our FISTA",
        package="",
        ours=lambda: solve_side(Work()),
        theirs=lambda: fista_side(Work()),
    ),
    Comparison(
        work="a batch of 100 signals, D of 250 × 500",
        peer="scikit-learn sparse_encode",
        package="scikit-learn",
        ours=lambda: solve_side(Work(signals=100)),
        theirs=lambda: scikit_learn_side(Work(signals=100)),
    ),
    Comparison(
        work="a training step of LISTA: 16 layers, D of 250 × 500, batch 64",
        peer="a PyTorch loop",
        package="torch",
        ours=lambda: training_side(Work()),
        theirs=lambda: torch_side(Work()),
    ),
)
