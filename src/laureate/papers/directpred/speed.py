"""A training step of DirectPred beside a plain PyTorch loop: an MLP encoder, a slow target, W_p set by eigenvectors."""

import equinox as eqx
import jax
import optax

from laureate.lab.running.comparison import Comparison, Side
from laureate.representation import DirectPred, Siamese

__all__ = ["COMPARISONS"]

INPUTS, HIDDEN, OUTPUTS, BATCH, STEPS = 64, 256, 64, 128, 20
RATE, MOMENTUM, RHO, FLOOR = 0.03, 0.996, 0.3, 0.1


def our_side() -> Side:
    """So many steps in one compiled scan; the state goes on from call to call."""
    model = eqx.nn.MLP(INPUTS, OUTPUTS, HIDDEN, 2, key=jax.random.key(0))
    siamese = Siamese(DirectPred(dim=OUTPUTS, rho=RHO, epsilon=FLOOR), optax.sgd(RATE), momentum=MOMENTUM)
    arrays, rest = eqx.partition(siamese.init(jax.random.key(1), model), eqx.is_array)

    @jax.jit
    def steps(arrays, key):
        def one(arrays, key):
            data, *noise = (jax.random.normal(k, (BATCH, INPUTS)) for k in jax.random.split(key, 3))
            views = (data + 0.1 * drawn for drawn in noise)
            return eqx.filter(siamese.step(eqx.combine(arrays, rest), *views)[0], eqx.is_array), None

        return jax.lax.scan(one, arrays, jax.random.split(key, STEPS))[0]

    calls = 0

    def work():
        nonlocal arrays, calls
        calls += 1
        arrays = jax.block_until_ready(steps(arrays, jax.random.key(calls)))
        return arrays.step

    return Side(work, 1 / STEPS)


def their_side() -> Side:
    """The same in PyTorch: autograd, SGD, ``linalg.eigh`` at every step."""
    import copy

    import torch  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUTPUTS)]
    online = nn.Sequential(*layers)
    target = copy.deepcopy(online)
    optimiser = torch.optim.SGD(online.parameters(), RATE)
    predictor, correlation = torch.eye(OUTPUTS), None

    def distance(p, z):
        return (2 - 2 * nn.functional.cosine_similarity(p, z, dim=1)).mean()

    def work():
        nonlocal predictor, correlation
        for _ in range(STEPS):
            data = torch.randn(BATCH, INPUTS)
            view1, view2 = (data + 0.1 * torch.randn_like(data) for _ in range(2))
            z1, z2 = online(view1), online(view2)
            with torch.no_grad():
                t1, t2 = target(view1), target(view2)
            loss = distance(z1 @ predictor.T, t2) + distance(z2 @ predictor.T, t1)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                z = torch.cat([z1, z2])
                moment = z.T @ z / len(z)
                correlation = moment if correlation is None else RHO * correlation + (1 - RHO) * moment
                s, u = torch.linalg.eigh(correlation)
                s = s.clamp(min=0)
                predictor = (u * (s / s.max()).sqrt()) @ u.T + FLOOR * torch.eye(OUTPUTS)
                for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
                    slow.mul_(MOMENTUM).add_(fast, alpha=1 - MOMENTUM)
        return float(predictor[0, 0])

    return Side(work, 1 / STEPS)


COMPARISONS = (
    Comparison(
        work=f"a step of DirectPred: MLP {INPUTS}-{HIDDEN}-{HIDDEN}-{OUTPUTS}, batch {BATCH}",
        peer="a PyTorch loop",
        package="torch",
        ours=our_side,
        theirs=their_side,
    ),
)
