"""Updates of DreamerV2's world model, beside the same in PyTorch: of vectors, and of images of 64 × 64."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate import control as c
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS"]

VARIABLES, CLASSES, MEMORY, WIDTH, ACTIONS, DEPTH, RATE = 16, 16, 128, 128, 4, 16, 3e-4
VECTOR, IMAGE = (24,), (64, 64, 3)
SIZES = {VECTOR: (16, 16), IMAGE: (8, 4)}  # steps and sequences


def drawn(shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Observations, actions and rewards of a batch."""
    rng, lead = np.random.default_rng(0), SIZES[shape]
    observation = rng.uniform(-0.5, 0.5, (*lead, *shape)).astype(np.float32)
    action = np.eye(ACTIONS, dtype=np.float32)[rng.integers(0, ACTIONS, lead)]
    return observation, action, rng.normal(size=lead).astype(np.float32)


def our_updates(shape: tuple[int, ...]) -> Side:
    """One compiled gradient step."""
    observation, action, reward = (jnp.asarray(leaf) for leaf in drawn(shape))
    empty = jnp.zeros(reward.shape, bool)
    batch = c.Sequences(observation, action, reward, empty, empty.at[0].set(True))
    sizes: dict[str, Any] = {"memory": MEMORY, "width": WIDTH, "depth": DEPTH}
    world = c.make_world_model(jax.random.key(0), shape, ACTIONS, law=c.OneHot(VARIABLES, CLASSES), **sizes)
    parameters, rest = eqx.partition(world, eqx.is_inexact_array)
    optimiser = optax.chain(optax.clip_by_global_norm(100.0), optax.adam(RATE, eps=1e-5))

    @jax.jit
    def update(key, parameters, state):
        def loss(parameters):
            return c.world_model_loss(key, eqx.combine(parameters, rest), batch)[0]

        value, slope = jax.value_and_grad(loss)(parameters)
        updates, state = optimiser.update(slope, state, parameters)
        return value, eqx.apply_updates(parameters, updates), state

    kept = [parameters, optimiser.init(parameters)]

    def again():
        value, *kept[:] = update(jax.random.key(1), *kept)
        return value

    return Side(again, note=f"{SIZES[shape][1]} sequences of {SIZES[shape][0]} steps; one program.")


def their_updates(shape: tuple[int, ...]) -> Side:
    """The same networks and losses in PyTorch, a loop over time."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch import nn  # pyright: ignore[reportMissingImports]
    from torch.nn import functional as f  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    observation, action, reward = (torch.tensor(leaf) for leaf in drawn(shape))
    length, batch = reward.shape
    size, pixels = VARIABLES * CLASSES, len(shape) == 3
    features = size + MEMORY
    if pixels:
        channels = [shape[-1], *(DEPTH * 2**i for i in range(4))]
        down = [x for i in range(4) for x in (nn.Conv2d(channels[i], channels[i + 1], 4, 2), nn.ELU())]
        encoder, embedded = nn.Sequential(*down, nn.Flatten()), 32 * DEPTH
        back, sides = [32 * DEPTH, 4 * DEPTH, 2 * DEPTH, DEPTH, shape[-1]], (5, 5, 6, 6)
        up = [x for i in range(4) for x in (nn.ConvTranspose2d(back[i], back[i + 1], sides[i], 2), nn.ELU())][:-1]
        decoder = nn.Sequential(nn.Linear(features, back[0]), nn.Unflatten(1, (back[0], 1, 1)), *up)
        observation = observation.permute(0, 1, 4, 2, 3).contiguous()
    else:
        encoder, embedded = nn.Sequential(nn.Linear(*shape, WIDTH), nn.ELU(), nn.Linear(WIDTH, WIDTH), nn.ELU()), WIDTH
        decoder = nn.Sequential(nn.Linear(features, WIDTH), nn.ELU(), nn.Linear(WIDTH, *shape))
    two = lambda inputs, outputs: nn.Sequential(nn.Linear(inputs, WIDTH), nn.ELU(), nn.Linear(WIDTH, outputs))  # noqa: E731
    inputs = nn.Sequential(nn.Linear(size + ACTIONS, WIDTH), nn.ELU())
    gates, norm = nn.Linear(WIDTH + MEMORY, 3 * MEMORY), nn.LayerNorm(3 * MEMORY)
    prior, posterior, rewards, ends = (
        two(MEMORY, size),
        two(MEMORY + embedded, size),
        two(features, 1),
        two(features, 1),
    )
    parts = nn.ModuleList([encoder, decoder, inputs, gates, norm, prior, posterior, rewards, ends])
    optimiser = torch.optim.Adam(parts.parameters(), lr=RATE, eps=1e-5)

    def divergence(q, p):
        log_q, log_p = f.log_softmax(q, -1), f.log_softmax(p, -1)
        return (log_q.exp() * (log_q - log_p)).sum((-1, -2)).mean()

    def update():
        code = encoder(observation.flatten(0, 1)).unflatten(0, (length, batch))
        h, z, seen, priors, posteriors = torch.zeros(batch, MEMORY), torch.zeros(batch, size), [], [], []
        for t in range(length):
            moved = action[t] * (t > 0)
            r, new, u = norm(gates(torch.cat([inputs(torch.cat([z, moved], -1)), h], -1))).chunk(3, -1)
            u = torch.sigmoid(u - 1)
            h = u * torch.tanh(torch.sigmoid(r) * new) + (1 - u) * h
            p, q = (x.unflatten(-1, (VARIABLES, CLASSES)) for x in (prior(h), posterior(torch.cat([h, code[t]], -1))))
            soft = f.softmax(q, -1)
            hard = f.one_hot(torch.multinomial(soft.flatten(0, 1), 1)[:, 0], CLASSES).float().view_as(soft)
            z = (hard + soft - soft.detach()).flatten(1)
            seen.append(torch.cat([z, h], -1))
            priors.append(p)
            posteriors.append(q)
        x, p, q = torch.stack(seen).flatten(0, 1), torch.stack(priors), torch.stack(posteriors)
        wrong = 0.5 * ((decoder(x) - observation.flatten(0, 1)) ** 2).flatten(1).sum(1).mean()
        wrong = wrong + 0.5 * ((rewards(x)[:, 0] - reward.flatten()) ** 2).mean()
        logit = ends(x)[:, 0]
        wrong = wrong + 5 * f.binary_cross_entropy_with_logits(logit, torch.full_like(logit, 0.995))
        loss = wrong + 0.1 * (0.8 * divergence(q.detach(), p) + 0.2 * divergence(q, p.detach()))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parts.parameters(), 100.0)
        optimiser.step()
        return float(loss.detach())

    return Side(update, note="One thread, a loop over time.")


COMPARISONS = (
    Comparison(
        work=f"an update of DreamerV2's world model on vectors of {VECTOR[0]}: 16 sequences of 16 steps",
        peer="PyTorch, a loop over time",
        package="torch",
        ours=lambda: our_updates(VECTOR),
        theirs=lambda: their_updates(VECTOR),
    ),
    Comparison(
        work="an update of DreamerV2's world model on images of 64 × 64 × 3: 4 sequences of 8 steps",
        peer="PyTorch, a loop over time",
        package="torch",
        ours=lambda: our_updates(IMAGE),
        theirs=lambda: their_updates(IMAGE),
    ),
)
