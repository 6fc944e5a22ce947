"""Updates of PPO with RND on the chain, beside PyTorch as CleanRL writes it; PPO alone beside rejax, without RND."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.control import PPO, BonusPPO, Categorical, Training, make_actor_critic, make_rnd
from laureate.lab.running.comparison import Comparison, Side
from laureate.loops import step_or_reset
from laureate.problems.environments import Chain

__all__ = ["COMPARISONS"]

SIZE, ACTORS, ROLLOUT = 40, 16, 32
UPDATES, FEW = 100, 20  # of a run: the first weights, normalisers and warm-up are in it once; few for many seeds
WIDTH, FEATURES, RATE = 32, 16, 1e-3


def our_updates(seeds: int = 1, curious: bool = True) -> Side:
    """Whole updates in one program; several seeds side by side."""
    updates = UPDATES if seeds == 1 else FEW

    def run(key):
        network_key, bonus_key, init_key, run_key = jax.random.split(key, 4)
        heads: dict[str, Any] = {"gamma": (0.999, 0.99), "episodic": (1, 0)} if curious else {"gamma": 0.99}
        kind: Any = {"num_heads": 2} if curious else {"num_heads": 1, "kind": "separate"}
        network = make_actor_critic(network_key, SIZE, 2, width=WIDTH, **kind)
        ppo = PPO(network, Categorical(2), learning_rate=RATE, **heads)
        bonus = make_rnd(bonus_key, SIZE, width=WIDTH, num_features=FEATURES, learning_rate=RATE) if curious else None
        training = Training(Chain(SIZE), BonusPPO(ppo, bonus), ACTORS, ROLLOUT)
        step = lambda state, number: training.step(jax.random.fold_in(run_key, number), state)  # noqa: E731
        return jax.lax.scan(step, training.init(init_key), jnp.arange(updates))[1].episode_return

    program = jax.jit(jax.vmap(run))
    keys = jax.random.split(jax.random.key(0), seeds)
    note = f"{seeds} seeds side by side, a seed told." if seeds > 1 else "One seed, with its first weights."
    return Side(lambda: program(keys), times=1 / (updates * seeds), note=note)


def their_updates() -> Side:
    """The same networks and updates in PyTorch, the environments as one NumPy array."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk = nn.Sequential(nn.Linear(SIZE, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
            self.policy, self.values = nn.Linear(WIDTH, 2), nn.Linear(WIDTH, 2)

        def forward(self, x):
            h = self.trunk(x)
            return torch.distributions.Categorical(logits=self.policy(h)), self.values(h)

    agent = Agent()
    target = nn.Sequential(nn.Linear(SIZE, WIDTH), nn.LeakyReLU(), nn.Linear(WIDTH, FEATURES))
    hidden = [layer for _ in range(2) for layer in (nn.Linear(WIDTH, WIDTH), nn.LeakyReLU())]
    predictor = nn.Sequential(nn.Linear(SIZE, WIDTH), nn.LeakyReLU(), *hidden, nn.Linear(WIDTH, FEATURES))
    optimiser = torch.optim.Adam([*agent.parameters(), *predictor.parameters()], lr=RATE, eps=1e-5)
    forward = np.random.default_rng(0).integers(0, 2, SIZE)
    place, clock = np.zeros(ACTORS, int), np.zeros(ACTORS, int)
    eye, gammas = torch.eye(SIZE), torch.tensor([0.999, 0.99])
    moments = {"mean": torch.zeros(SIZE), "variance": torch.ones(SIZE), "returns": torch.tensor(1.0)}

    def seen(x):
        return ((x - moments["mean"]) / torch.sqrt(moments["variance"] + 1e-8)).clip(-5, 5)

    def update():
        rows = []
        for _ in range(ROLLOUT):
            x = eye[place]
            with torch.no_grad():
                law, values = agent(x)
                action = law.sample()
            moved = np.where(action.numpy() == forward[place], 1, -1)
            place[:] = np.clip(place + moved, 0, SIZE - 1)
            clock[:] += 1
            there = place == SIZE - 1
            ended = there | (clock >= 2 * SIZE)
            after = eye[place]
            ends = torch.tensor(there * 1.0), torch.tensor(ended)
            rows.append((x, action, law.log_prob(action), values, after, *ends))
            place[ended], clock[ended] = 0, 0
        x, action, old, values, after, reward, ended = map(torch.stack, zip(*rows, strict=True))
        with torch.no_grad():
            bonus = ((predictor(seen(after)) - target(seen(after))) ** 2).mean(-1)
            moments["mean"], moments["variance"] = after.reshape(-1, SIZE).mean(0), after.reshape(-1, SIZE).var(0)
            filtered, sums = torch.zeros(ACTORS), []
            for row in bonus:
                filtered = 0.99 * filtered + row
                sums.append(filtered)
            moments["returns"] = torch.stack(sums).var()
            rewards = torch.stack([reward.float(), bonus / moments["returns"].sqrt()], -1)
            following = torch.cat([values[1:], agent(eye[place])[1][None]])
            open_ = torch.stack([1 - ended.float(), torch.ones_like(bonus)], -1)
            advantage, ahead = torch.zeros_like(values), torch.zeros(ACTORS, 2)
            for t in reversed(range(ROLLOUT)):
                delta = rewards[t] + gammas * open_[t] * following[t] - values[t]
                advantage[t] = ahead = delta + gammas * 0.95 * open_[t] * ahead
            goal, gain = advantage + values, advantage @ torch.tensor([2.0, 1.0])
        for _ in range(4):
            for part in torch.randperm(ACTORS).chunk(4):
                law, found = agent(x[:, part])
                ratio = (law.log_prob(action[:, part]) - old[:, part]).exp()
                policy = -torch.min(ratio * gain[:, part], ratio.clip(0.9, 1.1) * gain[:, part]).mean()
                value = 0.5 * ((found - goal[:, part]) ** 2).mean((0, 1)).sum()
                near = seen(after[:, part])
                distilled = ((predictor(near) - target(near).detach()) ** 2).mean()
                optimiser.zero_grad()
                (policy + value - 0.001 * law.entropy().mean() + distilled).backward()
                optimiser.step()
        return float(bonus.mean())

    return Side(update, note="One seed. Statistics of the last rollout alone.")


def rejax_updates() -> Side:
    """PPO of rejax: the same chain, environments, steps, epochs, minibatches and sizes of both networks."""
    from gymnax.environments import spaces  # pyright: ignore[reportMissingImports]
    from rejax import PPO as TheirPPO  # pyright: ignore[reportMissingImports]  # noqa: N811

    chain = Chain(SIZE)

    class Wrapped:
        """The chain with the methods that rejax calls, and our own way to begin anew."""

        default_params = None

        def reset(self, key, params):
            return chain.reset(key)[::-1]

        def step(self, key, state, action, params):
            state, observation, step = step_or_reset(key, chain, state, action)
            return observation, state, step.reward, step.terminated | step.truncated, {}

        def action_space(self, params):
            return spaces.Discrete(2)

        def observation_space(self, params):
            return spaces.Box(0.0, 1.0, (SIZE,), jnp.float32)

    settings: dict[str, Any] = {"num_envs": ACTORS, "num_steps": ROLLOUT, "num_epochs": 4, "num_minibatches": 4}
    network = {"hidden_layer_sizes": (WIDTH, WIDTH), "activation": "relu"}
    peer = TheirPPO.create(
        env=Wrapped(), total_timesteps=1, learning_rate=RATE, gamma=0.99, agent_kwargs=network, **settings
    )

    def run(key):
        step = lambda state, _: (peer.train_iteration(state), None)  # noqa: E731
        return jax.lax.scan(step, peer.init_state(key), None, UPDATES)[0].actor_ts.params

    program = jax.jit(run)
    return Side(lambda: program(jax.random.key(0)), times=1 / UPDATES)


WORK = f"an update of PPO with RND: {ACTORS} × {ROLLOUT} environment steps on a chain of {SIZE}, 16 gradient steps"

COMPARISONS = (
    Comparison(
        work=f"{WORK}, one seed",
        peer="PyTorch, a loop as CleanRL's",
        package="torch",
        ours=our_updates,
        theirs=their_updates,
    ),
    Comparison(
        work=f"{WORK}, sixteen seeds side by side, a seed",
        peer="PyTorch, a loop as CleanRL's",
        package="torch",
        ours=lambda: our_updates(16),
        theirs=their_updates,
    ),
    Comparison(
        work=f"an update of PPO alone: {ACTORS} × {ROLLOUT} environment steps on a chain of {SIZE}, 16 gradient steps",
        peer="rejax's PPO",
        package="rejax",
        ours=lambda: our_updates(curious=False),
        theirs=rejax_updates,
    ),
)
