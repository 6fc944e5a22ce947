"""Updates of the dynamics cycle on small networks, beside the same in a loop of PyTorch as the authors write it."""

import random

import jax
import numpy as np

from laureate.control import Transitions, make_dynamics_cycle
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS"]

SEEN, STATES, ACTIONS, WIDTH, BATCH, UPDATES, KEPT = 12, 4, 2, 64, 32, 200, 128


def steps() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Steps of both domains; what they are changes no time."""
    rng = np.random.default_rng(0)
    rows = lambda width: rng.normal(size=(4000, width)).astype(np.float32)  # noqa: E731
    return [rows(SEEN), rows(ACTIONS), rows(SEEN)], [rows(STATES), rows(ACTIONS), rows(STATES)]


def our_updates(seeds: int = 1) -> Side:
    """Updates in one program; several seeds side by side."""
    x, y = (Transitions(*map(jax.numpy.asarray, part)) for part in steps())

    def run(key):
        make_key, train_key = jax.random.split(key)
        model = make_dynamics_cycle(make_key, x, y, width=WIDTH, num_kept=KEPT)
        return model.train(train_key, x, y, model.init(x, y), num_steps=UPDATES, batch=BATCH)[1].loss

    program = jax.jit(jax.vmap(run))
    keys = jax.random.split(jax.random.key(0), seeds)
    note = f"{seeds} seeds side by side, a seed told." if seeds > 1 else "One seed, with its first weights."
    return Side(lambda: program(keys), times=1 / (UPDATES * seeds), note=note)


def their_updates() -> Side:
    """The same networks and losses in PyTorch, with a pool that is a list, one update a call."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = ([torch.from_numpy(part) for part in domain] for domain in steps())

    def network(inputs, outputs):
        layers = [nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs)]
        return nn.Sequential(*layers)

    g, f, d = network(SEEN, STATES), network(STATES + ACTIONS, STATES), network(STATES, 1)
    of_maps, of_critic = torch.optim.Adam(g.parameters(), lr=1e-4), torch.optim.Adam(d.parameters(), lr=1e-3)
    pool: list = []

    def from_pool(rows):
        shown = []
        for row in rows:
            if len(pool) < KEPT:
                pool.append(row)
                shown.append(row)
            elif random.random() > 0.5:
                at = random.randrange(KEPT)
                shown.append(pool[at])
                pool[at] = row
            else:
                shown.append(row)
        return torch.stack(shown)

    def update():
        own, other = (torch.randint(0, 4000, (BATCH,)) for _ in range(2))
        now, a, after = (part[own] for part in x)
        here, there = g(now), g(after)
        ahead = here + f(torch.cat([here, a], 1))
        loss = 200 * (there - ahead).abs().mean() + 10 * ((d(here) - 1) ** 2).mean() + 10 * ((d(ahead) - 1) ** 2).mean()
        of_maps.zero_grad()
        loss.backward()
        of_maps.step()
        of_critic.zero_grad()
        shown = from_pool(here.detach())
        judged = 0.5 * ((d(y[0][other]) - 1) ** 2).mean() + 0.5 * (d(shown) ** 2).mean()
        judged.backward()
        of_critic.step()
        return float(judged)

    return Side(update, note="One seed.")


WORK = f"an update of state map and critic: width {WIDTH}, batch {BATCH}, {SEEN} numbers seen, {STATES} of the state"

COMPARISONS = (
    Comparison(
        work=f"{WORK}, one seed",
        peer="PyTorch, a loop as the authors'",
        package="torch",
        ours=our_updates,
        theirs=their_updates,
    ),
    Comparison(
        work=f"{WORK}, sixteen seeds side by side, a seed",
        peer="PyTorch, a loop as the authors'",
        package="torch",
        ours=lambda: our_updates(16),
        theirs=their_updates,
    ),
)
