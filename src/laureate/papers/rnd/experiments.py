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
    "A chain of 40 states (smoke: 24) with two actions whose meaning is drawn for every state and seed, a reward of 1 "
    "at its end, 80 steps an episode, stands for Montezuma's Revenge. As in the authors' code every end of an episode "
    "is a termination, also the time limit. Perceptrons of width 32, 16 actors, rollouts of 32 steps, 4 epochs of 4 "
    "minibatches, Adam at 0.001 for policy and predictor; all else is the paper's (clip 0.1, λ 0.95, γ 0.999 and 0.99, "
    "coefficients 2 and 1, entropy 0.001). The two rollouts that begin the statistics of observations (1,024 "
    "steps) count for nobody; agents without a bonus have none. One setting for all arms, nothing tuned: without a "
    "reward PPO has nothing to be tuned by."
)
REACHED = (
    "The bonus is of the observation that a step reached; the authors' code takes the next episode's first where one "
    "ends."
)
FIRST = "log of the share of all environment steps before the first reward"
LEARNING = Curve("curve", "step", "Return while learning", "environment steps", "mean return of an update's episodes")
# What stands at 0 has found no reward within its budget.
NEVER = Guard("limit", "log_share", high=0.0)


def agent(name: str, label: str, **settings: Any) -> Arm:
    """An arm: the paper's settings but for those given."""
    usual = {"bonus": "rnd", "heads": 2, "gamma_e": 0.999, "gamma_i": 0.99, "episodic": 0.0, "coefficient": 1.0}
    return Arm(name, label, **usual | {"entropy": 0.001, "speed": 1.0} | settings)


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


def chains(seeds: tuple[int, int, int], costs: tuple[float, float, float], **more: Any) -> dict[str, Scale]:
    """The scales of an experiment on chains."""
    wanted = sizes(**more)
    lengths = {"smoke": (24, 48), "desk": (40, 80), "full": (80, 160)}
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
        agent("random", "random actions", bonus="none", speed=1e-9),
        agent("episodic", "RND, intrinsic return within episodes", episodic=1.0),
        agent("weak", "RND, a tenth of the bonus", coefficient=0.1),
        agent("strong", "RND, ten times the bonus", coefficient=10.0),
    ),
    scales=chains((12, 12, 30), (18.0, 32.0, 2000.0)),
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
            trivial="random",
            unit="mean return of all episodes, 1 for the reward",
            source="table 1, Montezuma's Revenge and Venture",
            role="stand-in",
            reported="Montezuma's Revenge 8,152 with RND, 2,497 with PPO; Venture 1,859 and 0",
        ),
        Claim(
            "non-episodic",
            "Intrinsic returns that go on across episodes find the first reward earlier than those that end with them, "
            "by more than a tenth.",
            metric="log_share",
            method="rnd",
            baseline="episodic",
            margin=0.1,
            unit=FIRST,
            source="the section on pure exploration: intrinsic returns within and across episodes",
            role="stand-in",
            reported="more rooms, figure only",
        ),
        Claim(
            "bonus-scale",
            "The weight of the bonus matters, though it is normalised: with a tenth of it the first reward comes "
            "later, by more than a tenth.",
            metric="log_share",
            method="rnd",
            baseline="weak",
            margin=0.1,
            unit=FIRST,
            source="a reviewer's question: how sensitive is it to the scale of the bonus?",
            role="extension",
        ),
        Claim(
            "bonus-scale-strong",
            "With ten times the bonus the reward is reached nearly as often: in at most a tenth of all episodes less.",
            metric="area",
            method="strong",
            baseline="rnd",
            better="higher",
            margin=-0.1,
            unit="mean return of all episodes",
            source="the same",
            role="extension",
        ),
    ),
    curves=(LEARNING,),
    guards=(NEVER,),
    deviations=(SETTING, PILOTS, REACHED, "Returns are scaled from their first variance on; the code starts at 1."),
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
    ),
    scales=without_smoke(chains((2, 16, 30), (0.1, 22.0, 800.0))),
    claims=(
        Claim(
            "two-heads",
            "Where both returns are episodic and discounted alike, two heads find the reward no earlier and no later "
            "than one: within a quarter.",
            metric="log_share",
            method="two-heads",
            baseline="one-head",
            kind="equal",
            margin=0.25,
            unit=FIRST,
            source="the section on combining returns: two heads gave no benefit in the episodic setting",
            role="stand-in",
            reported="no benefit, figure only",
        ),
    ),
    curves=(LEARNING,),
    guards=(NEVER,),
    deviations=(SETTING, PILOTS, REACHED, "One head: the rewards are added, 2 and 1, instead of the advantages."),
    over="data sets",
)

BONUSES = Experiment(
    "bonuses",
    title="Which bonus?",
    trial=f"{TRIALS}:explore",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=(
        agent("rnd", "RND"),
        agent("dynamics", "error of a model of the dynamics", bonus="dynamics"),
        agent("autoencoder", "error of an autoencoder", bonus="autoencoder"),
        agent("count", "1/√n of the state", bonus="count"),
    ),
    scales=without_smoke(chains((2, 12, 30), (0.1, 38.0, 1500.0))),
    claims=(
        Claim(
            "chain-dynamics",
            "Against a bonus for what a model of the dynamics cannot predict, RND finds the first reward earlier, by "
            "more than a tenth.",
            metric="log_share",
            method="rnd",
            baseline="dynamics",
            margin=0.1,
            unit=FIRST,
            source="table 1",
            role="stand-in",
            reported="Montezuma's Revenge 8,152 and 400",
        ),
        Claim(
            "chain-count",
            "Counting, which is possible here, finds the first reward earlier than RND, by more than a tenth.",
            metric="log_share",
            method="count",
            baseline="rnd",
            margin=0.1,
            unit=FIRST,
            source="our own question: what is lost where states could be counted?",
            role="extension",
        ),
    ),
    curves=(LEARNING,),
    guards=(NEVER,),
    deviations=(SETTING, PILOTS, REACHED, "All networks have about the same size; the autoencoder's middle has 16."),
    over="data sets",
)

DISCOUNTS = Experiment(
    "discounts",
    title="Which discounts?",
    trial=f"{TRIALS}:explore",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=tuple(
        agent(f"e{e}-i{i}", f"γ_E = {e}, γ_I = {i}", gamma_e=e, gamma_i=i)
        for e in (0.9, 0.99, 0.999)
        for i in (0.9, 0.99, 0.999)
    ),
    scales=without_smoke(chains((2, 4, 10), (0.1, 18.0, 1200.0))),
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
        agent("thinned", "the predictor learns from 16 of the actors", thinned=1.0),
        agent("whole", "the predictor learns from all", thinned=0.0),
    ),
    scales=without_smoke(
        chains(
            (2, 12, 20),
            (0.1, 57.0, 2000.0),
            actors=(8, 16, 32, 64),
            tiny={"actors": (2, 4), "steps": 32, "kept": 2.0},
            desk={"steps": 81920, "kept": 16.0},
            full={"steps": 512000, "kept": 16.0},
        )
    ),
    claims=(
        Claim(
            "acting-steps",
            "More actors need more environment steps in all for the first reward, by a slope of more than a tenth: "
            "acting in parallel is no linear speed-up.",
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
            "acting-updates",
            "And they need fewer updates, by a slope of more than a tenth.",
            metric="log_updates",
            method="thinned",
            kind="trend",
            better="lower",
            margin=0.1,
            against="log_actors",
            unit="slope of log updates against log actors",
            source="the section on scaling up: more actors, better returns for the same number of updates",
            role="stand-in",
            reported="figure only",
        ),
        Claim(
            "thinning",
            "With 64 actors, a predictor that learns from a share of them finds the first reward earlier than one that "
            "learns from all.",
            metric="most_share",
            method="thinned",
            baseline="whole",
            unit=FIRST,
            source="the section on scaling up: without it the bonus would vanish faster with more actors",
            role="stand-in",
            reported="not measured in the paper",
        ),
    ),
    guards=(
        Guard("limit", "most_share", high=0.0, claims=("thinning",)),
        Guard("limit", "worst_share", high=0.0, claims=("acting-steps", "acting-updates")),
    ),
    deviations=(SETTING, PILOTS, REACHED, "8 to 64 actors; the paper has 32 to 1,024."),
    over="data sets",
)

STALE = Experiment(
    "stale",
    title="What if the bonus comes from an old predictor?",
    trial=f"{TRIALS}:stale",
    problem=PROBLEM,
    accepts=OFFERS,
    arms=tuple(agent(f"delay-{d}", f"{d} rollouts old", delay=float(d)) for d in (0, 1, 4, 16)),
    scales=without_smoke(
        chains(
            (2, 12, 20),
            (0.1, 25.0, 1500.0),
            tiny={"depth": 2, "updates": 16},
            desk={"depth": 16},
            full={"depth": 16},
        )
    ),
    claims=(
        Claim(
            "staleness",
            "A bonus from a predictor that is 16 rollouts old finds the first reward later than one from a fresh "
            "predictor, by more than a tenth.",
            metric="log_share",
            method="delay-0",
            baseline="delay-16",
            margin=0.1,
            unit=FIRST,
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
    guards=(NEVER,),
    deviations=(SETTING, PILOTS, REACHED, "Only the predictor is old; the statistics of observations are not."),
    over="data sets",
)
