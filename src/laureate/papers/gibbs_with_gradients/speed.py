"""Gibbs-With-Gradients on an Ising lattice beside a plain PyTorch loop.

The loop follows the authors' way: both ends of a step are evaluated by autograd, the site is drawn by multinomial. Both
sides run the same chain law, so their ratio per second is that of effective samples too.
"""

from typing import Any

import jax

from laureate.lab.running.comparison import Comparison, Side
from laureate.problems.energies import IsingLattice
from laureate.sampling import Binary, GibbsWithGradients

__all__ = ["COMPARISONS", "our_chains", "torch_chains"]

SIGMA = 0.2


def torch_chains(side: int, chains: int, steps: int) -> Side:
    """As the authors write it: autograd at both ends, multinomial, a loop over steps."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.bernoulli(torch.full((chains, side, side), 0.5))

    def energy(x):
        s = 2 * x - 1
        return 2 * SIGMA * (s * (torch.roll(s, 1, 1) + torch.roll(s, 1, 2))).sum((1, 2))

    def end(x):
        x = x.detach().requires_grad_()
        f = energy(x)
        (gradient,) = torch.autograd.grad(f.sum(), x)
        logits = (-(2 * x.detach() - 1) * gradient / 2).reshape(chains, -1)
        return f.detach(), torch.log_softmax(logits, dim=1)

    rows = torch.arange(chains)

    def work():
        nonlocal x
        for _ in range(steps):
            f, forward = end(x)
            site = torch.multinomial(forward.exp(), 1)[:, 0]
            proposal = x.reshape(chains, -1).clone()
            proposal[rows, site] = 1 - proposal[rows, site]
            proposal = proposal.reshape(x.shape)
            f_new, reverse = end(proposal)
            log_ratio = f_new - f + reverse[rows, site] - forward[rows, site]
            accept = (log_ratio.exp() > torch.rand(chains)).float()[:, None, None]
            x = accept * proposal + (1 - accept) * x
        return x.sum().item()

    return Side(work, 1 / steps)


def our_chains(kernel: Any, start: Any, steps: int) -> Side:
    """All chains in one compiled scan; the state goes on from call to call, as in PyTorch."""
    chains = len(start)
    state = jax.jit(jax.vmap(kernel.init))(start)

    @jax.jit
    def walk(state, key):
        def one(state, key):
            return jax.vmap(kernel.step)(jax.random.split(key, chains), state)[0], None

        return jax.lax.scan(one, state, jax.random.split(key, steps))[0]

    calls = 0

    def work():
        nonlocal state, calls
        calls += 1
        state = jax.block_until_ready(walk(state, jax.random.key(calls)))
        return state.position

    return Side(work, 1 / steps)


def lattice_chains(side: int, chains: int, steps: int) -> Side:
    """Our side of the comparison."""
    lattice = IsingLattice(side, SIGMA)
    start = jax.vmap(lattice.start)(jax.random.split(jax.random.key(0), chains))
    return our_chains(GibbsWithGradients(lattice, Binary()), start, steps)


COMPARISONS = (
    Comparison(
        work="one step of 100 chains on an Ising lattice of 50 × 50",
        peer="a PyTorch loop",
        package="torch",
        ours=lambda: lattice_chains(50, 100, 20),
        theirs=lambda: torch_chains(50, 100, 20),
    ),
)
