"""Selection of variables: knockoffs on a table of one's own, by responses whose true variables are known."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

REST = "statistic=statistic, q=q, num_draws=budget, allow_invalid=True, random_state=0"
STATISTICS = {"statistic": ("lasso", "ridge")}

DISCIPLINE = Discipline(
    name="selection",
    title="Which knockoffs find the most variables on this table?",
    kind="a table with a response",
    problem="table",
    area="selection",
    needs={"X": "inputs [rows, columns], numbers", "y": "the response, a number a row"},
    offers={"q": "the bound on the share of false discoveries; by default 0.2"},
    metrics=(
        Metric("f1", "true finds over finds and misses (F1): 1 where all are found and nothing else", "higher", (1.0,)),
        Metric("power", "share of the true variables that are found", "higher", (1.0,)),
        Metric("false", "share of false ones among the found", "lower", (0.0,)),
    ),
    unit="draws of knockoffs",
    entrants=(
        Entrant("second-order", f"KnockoffSelector(SecondOrderKnockoffs(), {REST})", STATISTICS),
        Entrant("copula", f"KnockoffSelector(CopulaKnockoffs(), {REST})", STATISTICS),
        Entrant("mixture", f"KnockoffSelector(MixtureKnockoffs(), {REST})", STATISTICS),
    ),
    trial="laureate.racing.tracks.selection:trial",
    facts="laureate.racing.tracks.selection:facts",
    script="""
selector = {method}.fit(table.X, table.y)
print(selector.get_support().nonzero()[0], selector.explanation_)
""",
    largest=4,
    one_shot=True,
    absent={
        "KnockoffGAN": "is trained for minutes a table: laureate run knockoff-gan/real-features",
        "GaussianKnockoffs": "needs the true mean and covariance",
        "FittedKnockoffGAN": "what KnockoffGAN gives",
        "RefinedKnockoffs": "what KnockoffGAN gives",
        "GaussianMixtureKnockoffs": "what MixtureKnockoffs gives",
    },
    notes=(
        "true variables of a real response are not known: responses are made up on your inputs, with the noise of y",
        "judge by --metric false whether the bound holds: F1 alone may reward an entrant that breaks it",
    ),
)
