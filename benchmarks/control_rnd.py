"""How environment steps a second of PPO with RND grow with actors and with seeds side by side.

    OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false PJRT_NPROC=1 \
        python -m benchmarks control_rnd [--json] [--quick]

Whole updates on a chain of 40 states: 32 steps of every actor, then 16 gradient steps of a policy and of a predictor of
width 32. Seconds, and the bytes of temporaries that XLA asks for.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import print_rows, seconds_of
from laureate.control import PPO, BonusPPO, Categorical, Training, make_actor_critic, make_rnd
from laureate.problems.environments import Chain

SIZE, ROLLOUT, UPDATES = 40, 32, 10


def run(key, actors):
    """Some updates from the first weights on."""
    network_key, bonus_key, init_key, run_key = jax.random.split(key, 4)
    network = make_actor_critic(network_key, SIZE, 2, width=32)
    ppo = PPO(network, Categorical(2), gamma=(0.999, 0.99), episodic=(1, 0), learning_rate=1e-3)
    bonus = make_rnd(bonus_key, SIZE, width=32, num_features=16, learning_rate=1e-3)
    training = Training(Chain(SIZE), BonusPPO(ppo, bonus), actors, ROLLOUT)
    step = lambda state, number: training.step(jax.random.fold_in(run_key, number), state)  # noqa: E731
    return jax.lax.scan(step, training.init(init_key), jnp.arange(UPDATES))[1].episode_return


def rows(sizes):
    for actors, seeds in sizes:
        keys = jax.random.split(jax.random.key(0), seeds)
        program = jax.jit(jax.vmap(lambda key: run(key, actors))).lower(keys).compile()  # noqa: B023
        seconds = float(np.median(seconds_of(lambda: program(keys))))  # noqa: B023
        steps = seeds * actors * ROLLOUT * UPDATES
        yield {
            "actors": actors,
            "seeds": seeds,
            "milliseconds an update": 1e3 * seconds / UPDATES,
            "steps a second": steps / seconds,
            "megabytes": getattr(program.memory_analysis(), "temp_size_in_bytes", 0) / 1e6,
        }


def main() -> None:
    quick = ((4, 1), (4, 2))
    print_rows(rows(quick if "--quick" in sys.argv else ((16, 1), (64, 1), (256, 1), (16, 4), (16, 16), (16, 64))))


if __name__ == "__main__":
    main()
