"""Agents on a long chain with one far reward: with and without a bonus, its returns, heads, scale, discounts."""

from typing import Any

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale

__all__ = ["ACTORS", "BONUSES", "CHAIN", "DISCOUNTS", "HEADS", "STALE", "agent", "sizes", "without_smoke"]

TRIALS = "laureate.papers.rnd.trials"
PROBLEM = "laureate.problems.environments:Chain"
OFFERS = ("reset", "step", "observation_space", "action_space")
PILOTS = (
    "Known when this was declared: the method note's pilots (three seeds each of PPO, RND, episodic RND and three "
    "scales of the bonus on a chain of 40), and two pilots of ours that sized the runs: RND on a chain of 32 (four "
    "seeds, also with episodic returns, where both found the reward in some seeds) and RND on this chain (six seeds, "
    "all found it after 21,000 to 32,000 steps), with other seeds than those measured."
)
SETTING = (
    "A chain of 40 states (smoke: 24; full: 80) with two actions whose meaning is drawn for every state and seed, a "
    "reward of 1 at its end, 80 steps an episode, stands for Montezuma's Revenge. As in the authors' code every end of "
    "an episode is a termination, also the time limit. Perceptrons of width 32, 16 actors, rollouts of 32 steps, 4 "
    "epochs of 4 minibatches, Adam at 0.001 for policy and predictor; all else is the paper's (clip 0.1, λ 0.95, γ "
    "0.999 and 0.99, coefficients 2 and 1, entropy 0.001). PPO alone weighs its advantage by 1, not 2. The two "
    "rollouts that begin the statistics of observations (1,024 steps) count for nobody; agents without a bonus have "
    "none. One setting for all arms, nothing tuned: without a reward PPO has nothing to be tuned by."
)
REACHED = (
    "The bonus is of the observation that a step reached; the authors' code takes the next episode's first where one "
    "ends."
)
PLAYED = "mean return of all episodes, 1 for the reward"
LEARNING = Curve("curve", "step", "Return while learning", "environment steps", "mean return of an update's episodes")
# Weights that are not finite take one action for ever, and all metrics stay finite.
FINITE = Guard("effective", "finite", low=1.0)
CHANGED = (
    "Changed after results at desk (chain, heads, bonuses, stale, actors) were seen: claims were decided by the steps "
    "to the first reward, which the slower arms do not find within the budget in some seeds; now by the share of all "
    "episodes that reach it, which has no cap, but a floor of 0: on the chain PPO and a tenth of the bonus lie there "
    "in every seed, episodic returns in 4 of 12."
)
SHORTER = (
    "24 states at desk, 48 steps an episode. On 40 states, as first declared, some seeds of the slower arms found no "
    "reward in 160 updates: agents that both never learn are equal, and a reward found late is a swing of the bonus."
)


def agent(name: str, label: str, **settings: Any) -> Arm:
    """An arm: the paper's settings but for those given."""
    usual = {"bonus": "rnd", "heads": 2, "gamma_e": 0.999, "gamma_i": 0.99, "episodic": 0.0, "coefficient": 1.0}
    return Arm(name, label, **usual | {"entropy": 0.001, "speed": 1.0, "distil": 1.0} | settings)


def random_actions(**settings: Any) -> Arm:
    """The trivial arm: its policy never learns."""
    return agent("random", "random actions", **{"speed": 1e-9} | settings)


def sizes(actors: Any = 16, **more: Any) -> dict[str, dict[str, Any]]:
    """The settings of every scale."""
    small = {"width": 4, "features": 2, "rate": 0.001, "keep": 1.0, "epochs": 1, "minibatches": 2, "rollout": 4}
    usual = {"width": 32, "features": 16, "rate": 0.001, "keep": 1.0, "epochs": 4, "minibatches": 4, "rollout": 32}
    return {
        "tiny": small | {"warmup": 1, "actors": 2, "updates": 4} | more.get("tiny", {}),
        "smoke": usual | {"warmup": 2, "actors": actors, "updates": 60} | more.get("smoke", {}),
        "desk": usual | {"warmup": 2, "actors": actors, "updates": 160} | more.get("desk", {}),
        "full": usual | {"warmup": 2, "actors": actors, "updates": 1000} | more.get("full", {}),
    }


def chains(
    seeds: tuple[int, int, int], costs: tuple[float, float, float], at_desk: int = 40, **more: Any
) -> dict[str, Scale]:
    """The scales of an experiment on chains; ``at_desk``: states of its chain there."""
    wanted = sizes(**more)
    lengths = {"smoke": (24, 48), "desk": (at_desk, 2 * at_desk), "full": (80, 160)}
    least = {"size": 4, "limit": 6, "deadly": True}
    found = {"tiny": Scale(2, block=2, compilation="lightest", problem=least, **wanted["tiny"])}
    for name, number, cost in zip(lengths, seeds, costs, strict=True):
        size, limit = lengths[name]
        problem = {"size": size, "limit": limit, "deadly": True}
        found[name] = Scale(number, block=number, cost=cost, problem=problem, **wanted[name])
    return found


def without_smoke(scales: dict[str, Scale]) -> dict[str, Scale]:
    """Where compiling alone would take longer than smoke may."""
    return {name: scale for name, scale in scales.items() if name != "smoke"}


CHAIN = Experiment(
    "chain",
    title="Who finds a reward that is 39 right choices away?",
    trial=f"{TRIALS}:explore",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=(
        agent("rnd", "RND"),
        agent("ppo", "PPO, no bonus", bonus="none"),
        agent("ppo-entropy", "PPO, ten times the entropy", bonus="none", entropy=0.01),
        random_actions(bonus="none"),
        agent("unlearned", "RND, the predictor never learns", distil=1e-9),
        agent("episodic", "RND, intrinsic return within episodes", episodic=1.0),
        agent("weak", "RND, a tenth of the bonus", coefficient=0.1),
        agent("strong", "RND, ten times the bonus", coefficient=10.0),
    ),
    scales=chains((12, 12, 30), (19.0, 33.0, 2300.0)),
    claims=(
        Claim(
            "solves-chain",
            "With RND the agent reaches the reward in more of its episodes than with PPO alone, by more than a third "
            "of all that it plays while it learns.",
            metric="area",
            method="rnd",
            baseline="ppo",
            better="higher",
            margin=0.3333,
            trivial="unlearned",
            unit=PLAYED,
            source="table 1, Montezuma's Revenge and Venture",
            role="stand-in",
            reported="Montezuma's Revenge 8,152 with RND, 2,497 with PPO; Venture 1,859 and 0",
        ),
        Claim(
            "non-episodic",
            "With intrinsic returns that go on across episodes the agent reaches the reward more often than with those "
            "that end with them: in more than a tenth of all episodes.",
            metric="area",
            method="rnd",
            baseline="episodic",
            better="higher",
            margin=0.1,
            trivial="unlearned",
            unit=PLAYED,
            source="the section on pure exploration: intrinsic returns within and across episodes",
            role="stand-in",
            reported="more rooms, figure only",
        ),
        Claim(
            "bonus-scale",
            "The weight of the bonus matters, though it is normalised: with a tenth of it the reward is reached less "
            "often, by more than a tenth of all episodes.",
            metric="area",
            method="rnd",
            baseline="weak",
            better="higher",
            margin=0.1,
            trivial="unlearned",
            unit=PLAYED,
            source="a reviewer's question: how sensitive is it to the scale of the bonus?",
            role="check",
        ),
        Claim(
            "bonus-scale-strong",
            "With ten times the bonus the reward is reached nearly as often: in at most a tenth of all episodes less.",
            metric="area",
            method="strong",
            baseline="rnd",
            better="higher",
            margin=-0.1,
            trivial="unlearned",
            unit=PLAYED,
            source="the same",
            role="extension",
        ),
    ),
    curves=(LEARNING,),
    guards=(FINITE,),
    deviations=(
        SETTING,
        PILOTS,
        REACHED,
        CHANGED,
        "Returns are scaled from their first variance on; the code starts at 1.",
        "Whitened one-hot observations stand at the clip while their state has less than 3.8 % of all visits, and "
        "shrink with visits after that: the bonus falls without learning. The arm whose predictor never learns has "
        "this alone, and is the trivial one.",
        "Before the first reward the weight of the bonus only competes with entropy and value losses: "
        "bonus-scale asks about no more than that. Seen afterwards: with a tenth of it every seed has 0, as PPO, so "
        "that its number is that of solves-chain; it is a check for that reason.",
    ),
    over="data sets",
)

HEADS = Experiment(
    "heads",
    title="One value head or two?",
    trial=f"{TRIALS}:explore",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=(
        agent("two-heads", "two heads, episodic, γ = 0.99", episodic=1.0, gamma_e=0.99),
        agent("one-head", "one head, episodic, γ = 0.99", episodic=1.0, gamma_e=0.99, heads=1),
        random_actions(),
    ),
    scales=without_smoke(chains((2, 16, 30), (0.1, 27.0, 1100.0), at_desk=24)),
    claims=(
        Claim(
            "two-heads",
            "Where both returns are episodic and discounted alike, two heads reach the reward as often as one: within "
            "a tenth of all episodes.",
            metric="area",
            method="two-heads",
            baseline="one-head",
            kind="equal",
            better="higher",
            margin=0.1,
            trivial="random",
            unit=PLAYED,
            source="the section on combining returns: two heads gave no benefit in the episodic setting",
            role="stand-in",
            reported="no benefit, figure only",
        ),
    ),
    curves=(LEARNING,),
    # Agents that never learn are equal too.
    guards=(FINITE, Guard("effective", "success", low=0.5)),
    deviations=(
        SETTING,
        PILOTS,
        REACHED,
        CHANGED,
        SHORTER,
        "One head: the rewards are added, 2 and 1, instead of the advantages.",
        "Until the first reward both agents are the same but for a head that fits 0: the steps to it decide nothing.",
    ),
    over="data sets",
)

BONUSES = Experiment(
    "bonuses",
    title="Which bonus?",
    trial=f"{TRIALS}:explore",
    problem=PROBLEM,
    arms=(
        agent("rnd", "RND"),
        agent("dynamics", "error of a model of the dynamics", bonus="dynamics"),
        agent("count", "1/√n of the state", bonus="count"),
        random_actions(bonus="count"),
    ),
    scales=without_smoke(chains((2, 12, 30), (0.1, 23.0, 1500.0))),
    claims=(
        Claim(
            "chain-dynamics",
            "RND reaches the reward more often than a bonus for what a model of the dynamics cannot predict, by more "
            "than a tenth of all episodes.",
            metric="area",
            method="rnd",
            baseline="dynamics",
            better="higher",
            margin=0.1,
            trivial="random",
            unit=PLAYED,
            source="table 1",
            role="stand-in",
            reported="Montezuma's Revenge 8,152 and 400",
        ),
        Claim(
            "chain-count",
            "Counting, which is possible here, reaches the reward more often than RND, by more than a tenth of all "
            "episodes.",
            metric="area",
            method="count",
            baseline="rnd",
            better="higher",
            margin=0.1,
            trivial="random",
            unit=PLAYED,
            source="our own question: what is lost where states could be counted?",
            role="extension",
        ),
    ),
    curves=(LEARNING,),
    guards=(FINITE,),
    deviations=(
        SETTING,
        PILOTS,
        REACHED,
        CHANGED,
        "All networks have about the same size. On a chain without noise a model of the dynamics has nothing that it "
        "cannot learn: what the paper holds against it is asked in the experiment television.",
        "By the steps to the first reward, as first declared, chain-dynamics was refuted.",
        "An arm with an autoencoder, of which no claim spoke, was dropped for time after results were seen.",
    ),
    over="data sets",
)

GAMMAS = (0.9, 0.99, 0.999)

DISCOUNTS = Experiment(
    "discounts",
    title="Which discounts?",
    trial=f"{TRIALS}:explore",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=(
        *(agent(f"e{e}-i{i}", f"γ_E = {e}, γ_I = {i}", gamma_e=e, gamma_i=i) for e in GAMMAS for i in GAMMAS),
        random_actions(),
    ),
    scales=without_smoke(chains((2, 4, 10), (0.1, 21.0, 1300.0))),
    claims=(
        Claim(
            "discounts",
            "How does the success at the end depend on both discounts?",
            metric="success",
            method="e0.999-i0.99",
            kind="question",
            unit="mean return of the last quarter's episodes",
            source="the section on discounts: a higher extrinsic one helps, a higher intrinsic one hurts",
            role="stand-in",
            reported="γ_E 0.999 better than 0.99; γ_I 0.999 worse than 0.99; figure only",
        ),
    ),
    deviations=(SETTING, PILOTS, REACHED),
    over="data sets",
)

ACTORS = Experiment(
    "actors",
    title="More actors: fewer updates, or fewer steps?",
    trial=f"{TRIALS}:actors",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=(
        agent("thinned", "the predictor learns from 8 of the actors", thinned=1.0),
        agent("whole", "the predictor learns from all", thinned=0.0),
        random_actions(thinned=0.0),
    ),
    scales=without_smoke(
        chains(
            (2, 10, 20),
            (0.1, 49.0, 2500.0),
            actors=(8, 16, 32),
            tiny={"actors": (2, 4), "steps": 32, "kept": 2.0},
            desk={"steps": 81920, "kept": 8.0},
            full={"actors": (8, 16, 32, 64), "steps": 512000, "kept": 8.0},
        )
    ),
    claims=(
        Claim(
            "acting-steps",
            "More actors need more environment steps in all for the first reward, by a slope of more than a tenth: "
            "acting in parallel is no linear speed-up. A slope below 1 means fewer updates.",
            metric="log_steps",
            method="thinned",
            kind="trend",
            better="higher",
            margin=0.1,
            against="log_actors",
            unit="slope of log steps against log actors",
            source="a reviewer's question: curves against acting steps instead of updates",
            role="extension",
        ),
        Claim(
            "thinning",
            "With 32 actors, a predictor that learns from a quarter of them reaches the reward more often than one "
            "that learns from all.",
            metric="most_area",
            method="thinned",
            baseline="whole",
            better="higher",
            trivial="random",
            unit=PLAYED,
            source="the section on scaling up: without it the bonus would vanish faster with more actors",
            role="extension",
            reported="not measured in the paper",
        ),
    ),
    # At 0 no reward was found within the budget.
    guards=(FINITE, Guard("limit", "worst_share", high=0.0, claims=("acting-steps",))),
    deviations=(
        SETTING,
        PILOTS,
        REACHED,
        CHANGED,
        "8 to 32 actors; the paper has 32 to 1,024. With 64, which had 40 updates, some seeds found no reward: "
        "seen, then left out. A claim about updates was the same number less 1, and is gone.",
    ),
    over="data sets",
)

STALE = Experiment(
    "stale",
    title="What if the bonus comes from an old predictor?",
    trial=f"{TRIALS}:stale",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=(
        *(agent(f"delay-{d}", f"{d} rollouts old", delay=float(d)) for d in (0, 1, 4, 16)),
        random_actions(delay=0.0),
    ),
    scales=without_smoke(
        chains(
            (2, 12, 20),
            (0.1, 27.0, 1800.0),
            at_desk=24,
            tiny={"depth": 2, "updates": 16},
            desk={"depth": 16},
            full={"depth": 16},
        )
    ),
    claims=(
        Claim(
            "staleness",
            "With a bonus from a predictor that is 16 rollouts old the agent reaches the reward less often than with "
            "one from a fresh predictor, by more than a tenth of all episodes.",
            metric="area",
            method="delay-0",
            baseline="delay-16",
            better="higher",
            margin=0.1,
            trivial="random",
            unit=PLAYED,
            source="a reviewer's question: distributed training, where predictors lag behind",
            role="extension",
        ),
        Claim(
            "staleness-swing",
            "And the mean bonus swings more at periods of 16 to 64 rollouts: by more than a factor of 2.",
            metric="log_swing",
            method="delay-16",
            baseline="delay-0",
            better="higher",
            margin=0.6931,
            unit="log of the variance of the log mean bonus in that band, second half of the run",
            source="the same: does a delay make the bonus oscillate?",
            role="extension",
        ),
    ),
    # A reward found first in the half that is looked at is itself a swing.
    guards=(FINITE, Guard("limit", "log_share", high=-0.6931, claims=("staleness-swing",))),
    deviations=(
        SETTING,
        PILOTS,
        REACHED,
        CHANGED,
        SHORTER,
        "Only the predictor is old; the statistics of observations are not.",
    ),
    over="data sets",
)
