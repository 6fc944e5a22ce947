"""Exploration: agents in an environment of one's own whose reward may be far away."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.001, 0.003, 0.01, 0.03)}
PAID = RATES | {"coefficient": (1.0, 3.0, 10.0)}
LAW = "law_of(environment.action_space)"
ONE = f"PPO(make_actor_critic(key, inputs, outputs, num_heads=1, width=32), {LAW}, 0.999"
TWO = (
    f"PPO(make_actor_critic(key, inputs, outputs, width=32), {LAW}, (0.999, 0.99), (1, 0), learning_rate=learning_rate)"
)
# Signs of projections with an offset: without one, all that lies along a ray would be one cell.
CELLS = "lambda seen: SimHash(jax.random.normal(other, (16, inputs + 1)))(jnp.append(seen, 1.0))"
SIZE = "width=32, learning_rate=learning_rate"


def _paid(bonus: str) -> str:
    """PPO with that bonus, which draws its first weights from the key ``other``."""
    return f"lambda key, other: BonusPPO({TWO}, {bonus}, coefficients=(2.0, coefficient))"


DISCIPLINE = Discipline(
    name="exploration",
    title="Which bonus finds the reward?",
    kind="an environment",
    problem="environment",
    area="control",
    needs={
        "reset": "reset(key): a first state, and what is seen of it",
        "step": "step(key, state, action): the next state, and a laureate.loops.Timestep",
        "observation_space": "a laureate.loops.Box",
        "action_space": "laureate.loops.Discrete, or a Box of one axis",
    },
    metrics=(
        Metric("fresh", "mean return of fresh episodes of the policy, or of their first 500 steps", "higher"),
        Metric("earned", "mean return of the episodes that ended while it learned", "higher"),
    ),
    unit="environment steps",
    entrants=(
        Entrant("rnd", _paid(f"make_rnd(other, inputs, {SIZE})"), PAID),
        Entrant("count", _paid(f"CountBonus({CELLS}, 65536)"), PAID),
        Entrant("autoencoder", _paid(f"make_autoencoder(other, inputs, {SIZE})"), PAID),
        Entrant("dynamics", _paid(f"make_dynamics(other, inputs, outputs, {SIZE})"), PAID),
        Entrant(
            "ppo",
            f"lambda key, other: BonusPPO({ONE}, learning_rate=learning_rate, entropy=entropy))",
            RATES | {"entropy": (0.001, 0.01, 0.1)},
        ),
        Entrant("random", f"lambda key, other: BonusPPO({ONE}, learning_rate=1e-09))"),
    ),
    trial="laureate.racing.tracks.exploration:trial",
    facts="laureate.racing.tracks.exploration:facts",
    script="""
network_key, bonus_key, run_key = jax.random.split(jax.random.key(0), 3)
learner = ({method})(network_key, bonus_key)
outcome = Training(environment, learner, num_environments={actors}, num_steps={rollout}).run(run_key, 100)
print(outcome.seen.episode_return[-10:])
""",
    settings={"judges": 64, "longest": 500},
    absent={
        "RND": "enters as make_rnd makes it",
        "AutoencoderBonus": "enters as make_autoencoder makes it",
        "DynamicsBonus": "enters as make_dynamics makes it",
        "ReturnScale": "divides every bonus here",
        "Training": "is what trains all entrants",
        "GymnasiumTraining": "an environment of Gymnasium cannot be compiled",
        "GymnasiumEnvironments": "the same",
        "DreamerV2": "has no bonus for exploring, and a training loop of its own",
        "DreamerTraining": "that loop",
        "GymnasiumDreamerTraining": "that loop in Gymnasium",
        "RSSM": "a part of DreamerV2",
        "DynamicsCycle": "maps two domains to each other, and explores nothing",
        "CycleGAN": "the same",
        "CorrespondenceTraining": "trains both",
        "PooledCritic": "a part of both",
    },
    notes=(
        "perceptrons of width 32 for all; what each is tuned by beside the rate: the bonus's weight, or the entropy's",
        "the rollout that begins the statistics of a bonus is charged to its entrant",
        "counts are of 16 signs of random projections with offsets, whatever an observation is",
    ),
)
