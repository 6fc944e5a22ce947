"""A bonus from the error of predicting a fixed random network."""

from laureate.lab.claim import Film, Paper
from laureate.papers.rnd.experiments import ACTORS, BONUSES, CHAIN, DISCOUNTS, HEADS, STALE
from laureate.papers.rnd.experiments_alone import DECAY, MONTEZUMA, TELEVISION, TRUNK

__all__ = ["PAPER"]

CHAIN_FILM = Film(
    "chain",
    "One more episode on the chain of 40 states, after the same training",
    recorder="laureate.papers.rnd.trials_films:on_the_chain",
    experiment="chain",
    arms=("rnd", "episodic", "ppo"),
    said="The row is the chain, with the reward at its right end; beneath it the way, with time running downwards.",
)
TELEVISION_FILM = Film(
    "television",
    "One more episode in the room with the television, after the same training",
    recorder="laureate.papers.rnd.trials_films:with_a_television",
    experiment="television",
    arms=("rnd", "dynamics", "random"),
    said="The green cell is the one from which the television can be switched; its screen stands beside the room.",
)

PAPER = Paper(
    id="rnd",
    area="control",
    problem=(
        "My agent never sees a reward, because none is near enough to be found by chance. How do I pay it for looking "
        "where it has not been, without spoiling what it learns once there is a reward? Or: which of my data are "
        "unlike the rest?"
    ),
    idea=(
        "Fix a random network. Let a second one learn to predict its outputs on what the agent sees. Where the agent "
        "has been often the prediction is good; where it is bad, something is new. The error is divided by a running "
        "deviation of its returns and paid as a second reward, with a value head and a discount of its own, and its "
        "returns do not end with the episode: dying is only as bad as what one already knows. The target is fixed and "
        "certain, so noise in the world is no reason for the error to stay."
    ),
    equation=(
        "i_t = mean_k (f̂_k(s̄_{t+1}) − f_k(s̄_{t+1}))²\n"
        "A = 2 A_E + A_I,   δ_I = i + γ_I V_I(s') − V_I(s)  also at the ends of episodes"
    ),
    example=(
        "import jax\n"
        "from laureate.control import PPO, BonusPPO, Training, law_of, make_actor_critic, make_rnd\n"
        "from laureate.problems.environments import Chain  # yours: reset(key), step(key, state, action), spaces\n"
        "\n"
        "world = Chain(20)\n"
        "network = make_actor_critic(jax.random.key(0), 20, 2, width=32)\n"
        "ppo = PPO(network, law_of(world.action_space), gamma=(0.999, 0.99), episodic=(1, 0), learning_rate=1e-3)\n"
        "rnd = make_rnd(jax.random.key(1), 20, width=32, learning_rate=1e-3)\n"
        "outcome = Training(world, BonusPPO(ppo, rnd), num_steps=32).run(jax.random.key(2), 60)\n"
        "print(outcome.seen.episode_return[-10:])\n"
    ),
    meaning=(
        "On a 40-state chain PPO never meets a reward, nor RND with a tenth of the bonus; RND reaches it in 67 % of "
        "episodes, 27 % if intrinsic returns end with episodes. Counts (71 %) and a model's error (64 %) are not told "
        "apart from RND. Of late steps RND spends 10 % at a television with eight pictures (chance 1 %), the model's "
        "agent 67 %; endless noise holds RND too. MNIST novelty falls with log-slope −0.24. On 24 states two heads "
        "stay within a tenth of one; a fixed policy's values gained from a loud bonus."
    ),
    experiments=(CHAIN, HEADS, BONUSES, DECAY, TELEVISION, ACTORS, TRUNK, STALE, DISCOUNTS, MONTEZUMA),
    films=(CHAIN_FILM, TELEVISION_FILM),
)
