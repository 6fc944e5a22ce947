"""Correspondence of two domains by dynamics cycle-consistency."""

from laureate.lab.claim import Film, Paper
from laureate.papers.dynamics_cycle.experiments import ABLATIONS, PAIRS, PIXELS, SENSORS
from laureate.papers.dynamics_cycle.experiments_bodies import BODIES, CIRCLE, PHYSICS, PLANE

__all__ = ["PAPER"]

ARM_FILM = Film(
    "arm",
    "The policy on a body whose sensor it has never seen",
    recorder="laureate.papers.dynamics_cycle.trials_films:through_the_sensor",
    experiment="sensors",
    arms=("full", "gan", "mean"),
    said=(
        "Two links under gravity, and in green where the policy wants them. It gets what each map makes of twelve "
        "numbers of a random network; all begin alike. Maps were learned as in the experiment."
    ),
)

PAPER = Paper(
    id="dynamics-cycle",
    area="control",
    problem=(
        "My policy works on one robot, or in a simulator. Now the sensors are others, or the body is, and I have no "
        "rewards there and no data in which both are seen at once. Can I still use the policy?"
    ),
    idea=(
        "Record steps in both domains, each on its own. Fit a model that predicts the next state in the domain of the "
        "policy, and fix it. Then learn a map from the other domain such that both ways around agree: act there and "
        "map what follows, or map first and predict. An adversary asks that mapped states look like real ones. Where "
        "the actions differ, maps of actions are learned in turns with that of states. What both domains do alike "
        "under a symmetry, no such data can tell apart."
    ),
    equation=("L_dyn = E ‖G(x') − F(G(x), H(x, a))‖₁,   F fitted to Y and fixed\nπ_X(x) = P(ŷ, π_Y(ŷ)),   ŷ = G(x)"),
    example=(
        "import jax\n"
        "from laureate.control import Transitions, make_dynamics_cycle\n"
        "from laureate.problems.two_bodies import TwoBodies, collect  # yours: two sets of arrays\n"
        "\n"
        "pair, act = TwoBodies(), lambda noise, y: noise  # random actions\n"
        "y = Transitions(*collect(jax.random.key(0), pair.step, pair.reset, act, 50, 20))\n"
        "s, a, after = collect(jax.random.key(1), pair.step_x, pair.reset, act, 50, 20)\n"
        "x = Transitions(jax.vmap(pair.see)(s), a, jax.vmap(pair.see)(after))\n"
        "cycle = make_dynamics_cycle(jax.random.key(2), x, y, learning_rate=1e-3)\n"
        "cycle, state, told = cycle.fit(jax.random.key(3), x, y, num_forward=500, num_steps=200)\n"
        "policy = cycle.transfer(pair.policy, state)\n"
        "print(policy(x.observation[0]))\n"
    ),
    meaning=(
        "On two joints behind an unknown sensor, unpaired steps give a map with an error of 0.12 (CycleGAN "
        "1.10, guessing the mean 0.83) and the policy keeps 99 % of its gain over random actions; whether it beats "
        "linear least squares (0.20) or needs the adversary is open. On a plane 0.13 of a planted offset of 1.15 "
        "remains, 0.37 without the adversary. From pixels the error is 0.63 (bound 0.4). Turned actions are not "
        "found: policies earn less than random. At double mass the learned action map costs 18 % more than no map; an "
        "exact one hardly gains."
    ),
    experiments=(SENSORS, PAIRS, PIXELS, PLANE, CIRCLE, BODIES, PHYSICS, ABLATIONS),
    films=(ARM_FILM,),
)
