"""An agent that learns in a world model with discrete latents."""

from laureate.lab.claim import Film, Paper
from laureate.papers.dreamer_v2.experiments import ENDS, MASS, ROOM
from laureate.papers.dreamer_v2.experiments_alone import AGGREGATION, BALANCE, CROSSROADS, STRAIGHT_THROUGH

__all__ = ["PAPER"]

ROOM_FILM = Film(
    "room",
    "One more episode in the room, and the same episode dreamt",
    recorder="laureate.papers.dreamer_v2.trials_films:at_work",
    experiment="room",
    arms=("dreamer", "ppo-encoded", "random"),
    said=(
        "Green is warm. Blue is what happened; orange are the cells that the model dreamt of the whole episode when it "
        "had seen the first moment, with actions of its own. Trained as in the experiment, with the middle of the "
        "grids' rates and entropies."
    ),
    seconds=0.4,
)

PAPER = Paper(
    id="dreamer-v2",
    area="control",
    problem=(
        "Steps in my environment are few or expensive. How do I learn a model of it that I can also use for other "
        "things, and a policy that is trained inside that model? And which of latents, balance and gradient matters?"
    ),
    idea=(
        "A recurrent model has a memory and a latent of several one-hot choices. From an observation it knows the "
        "latent, without one it predicts it, and the two are pulled together: the prediction more than what is known. "
        "Draws pass their gradient straight through. From every state that was seen the policy is rolled out in the "
        "model for a few steps; rewards, ends and values are predicted, and actor and critic learn from these dreams "
        "alone: by REINFORCE for discrete actions, through the model for continuous ones."
    ),
    equation=(
        "z = onehot(i) + p − sg(p),   L = −log p(x, r, γ | z, h) + β [α KL(sg(q)‖p) + (1 − α) KL(q‖sg(p))]\n"
        "G_t = r_t + d_t ((1 − λ) v_{t+1} + λ G_{t+1}),   ∇π: ρ log π sg(G − v) + (1 − ρ) G + η H(π)"
    ),
    example=(
        "import jax\n"
        "from laureate.control import DreamerTraining, OneHot, Replay, make_dreamer\n"
        "from laureate.problems.small_worlds import Room  # yours: reset(key), step(key, state, action), spaces\n"
        "\n"
        "small = {'latent': OneHot(4, 4), 'memory': 16, 'width': 16, 'horizon': 6, 'slow_every': 10}\n"
        "rates = {'model_rate': 3e-3, 'actor_rate': 1e-3, 'critic_rate': 3e-3, 'entropy': 0.03, 'gamma': 0.95}\n"
        "agent = make_dreamer(jax.random.key(0), (9,), OneHot(1, 4), **small, **rates)\n"
        "training = DreamerTraining(Room(3, 12), agent, Replay(1024, 8), 4, 2, batch=8, num_warmup=16)\n"
        "print(training.run(jax.random.key(1), 480).seen.episode_return[-20:])\n"
    ),
    meaning=(
        "Where the world branches, one-hot latents foretell the next picture better than normal ones (by 0.27 nats), "
        "but normal ones did no better than a blind prior; whether one-hot imagine more branches by our margin is "
        "open (overlap 0.15 against 0.03, of 1), and so is balancing. After 640 steps in a small room DreamerV2 earned "
        "less than PPO with the same encoder (3.9 against 7.4, of at most 14.6), and than a wider PPO (9.3): refuted "
        "at this size. Which gradient is better is open. No agent here sees pixels or hidden state, which the paper is "
        "about."
    ),
    experiments=(CROSSROADS, ROOM, MASS, ENDS, STRAIGHT_THROUGH, BALANCE, AGGREGATION),
    films=(ROOM_FILM,),
)
