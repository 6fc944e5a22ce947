"""Important neurons: small translators, ranked by the agreement of models, erased and looked at."""

from typing import Any

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale
from laureate.papers.important_neurons.experiments import PILOTS, changed

__all__ = [
    "DESK",
    "ERASURE",
    "FULL",
    "GRAMMARS",
    "HOW_MANY",
    "INTERPRETABLE",
    "KNOWN",
    "LEARNED",
    "PROBLEM",
    "SETTING",
    "SMOKE",
    "TINY",
    "TRANSFORMER",
    "TRIALS",
]

TRIALS = "laureate.papers.important_neurons.trials"
PROBLEM = "laureate.problems.grammar:Translation"
GRAMMARS: dict[str, dict[str, Any]] = {
    "tiny": {"train": 60, "test": 60, "nouns": 2, "adjectives": 2, "verbs": 2, "length": 8},
    "smoke": {"train": 5000, "test": 300, "nouns": 4, "adjectives": 3, "verbs": 3, "length": 10},
    "desk": {"train": 14000, "test": 600, "nouns": 8, "adjectives": 5, "verbs": 5, "length": 12},
    "full": {"train": 900000, "test": 4000, "nouns": 100, "adjectives": 50, "verbs": 50, "length": 30},
}
TINY: dict[str, Any] = {"kind": "recurrent", "models": 5, "units": 6, "steps": 3, "batch": 4, "rate": 0.01}
SMOKE: dict[str, Any] = TINY | {"models": 5, "units": 16, "steps": 500, "batch": 16}
DESK: dict[str, Any] = TINY | {"models": 7, "units": 32, "steps": 500, "batch": 24}
FULL: dict[str, Any] = TINY | {"models": 18, "units": 500, "steps": 20000, "batch": 64, "rate": 0.001}
LEARNED = Guard("effective", "learned", low=0.2)
# Where the language is ours, all of it can be learned, and who has not learned a property cannot show it.
KNOWN = Guard("effective", "accuracy", low=0.9)

SETTING = (
    "Recurrent encoders of 16 (smoke) or 32 units (desk) with a perceptron that says one target word for each source "
    "word, on an artificial language, instead of two-layer LSTMs of 500 units with attention on the UN corpus; losses "
    "in nats a word instead of BLEU. Each model is trained on sentences of its own, as the authors have; all translate "
    "into the same language. Every model of a seed is ranked against all others, and a seed counts as one observation, "
    "the mean over its models. Models that learned less than a fifth of the words' entropy decide nothing. Units are "
    "ranked on the first half of the test sentences, all else is measured on the second. Sizes were set by the seconds "
    "of seeds that decide nothing (1000 and 1001); of one of them the accuracy before any erasure was seen too, at 28 "
    "units (above 0.99), and the losses of four models (0.006 to 0.028 nats). All seeds have the same sentences. "
    "A first run at smoke had 250 steps, after which a verb in three had the wrong tense; since then it has 500, and "
    "what is read from our own language asks for an accuracy of 0.9."
)

RANKINGS = {
    "max-corr": "MaxCorr",
    "min-corr": "MinCorr",
    "linear-regression": "LinReg",
    "svcca": "SVCCA, directions",
    "standard-deviation": "standard deviation",
    "output-norm": "output weights",
    "product": "deviation × weights",
    "ablation": "each unit's own effect",
    "random": "random order",
}
ARMS = tuple(Arm(name, label, ranking=name) for name, label in RANKINGS.items())
CURVED: dict[str, Any] = {"fractions": (0.0, 0.1, 0.25, 0.5, 0.75, 1.0), "judged": 0.25}
NATS = "nats a word, top less bottom"
REPORTED = "En–Es: the top 10 % cost 15–20 BLEU, the bottom 10 % cost 2–3"


def _gap(name: str, arm: str, what: str, **more: Any) -> Claim:
    usual: dict[str, Any] = {
        "metric": "gap",
        "kind": "bound",
        "at_least": 0.0,
        "trivial": "random",
        "unit": NATS,
        "role": "stand-in",
        "source": "the paper's erasure curves",
    }
    return Claim(name, what, method=arm, **usual | more)


ERASURE = Experiment(
    "erasure",
    title="Does erasing units that models agree on cost more than erasing the others?",
    trial=f"{TRIALS}:erased",
    problem=PROBLEM,
    accepts=("sources", "targets", "test_sources", "test_targets"),
    arms=ARMS,
    scales={
        "tiny": Scale(2, block=2, problem=GRAMMARS["tiny"], **TINY, **CURVED),
        "smoke": Scale(10, block=5, cost=13.0, problem=GRAMMARS["smoke"], **SMOKE, **CURVED),
        "desk": Scale(10, block=5, cost=80.0, problem=GRAMMARS["desk"], **DESK, **CURVED),
        "full": Scale(
            10, block=1, cost=4e6, problem=GRAMMARS["full"], **FULL, fractions=CURVED["fractions"], judged=0.1
        ),
    },
    claims=(
        _gap(
            "erasure",
            "max-corr",
            "setting the top quarter of units by MaxCorr to zero costs more than the bottom quarter.",
            reported=REPORTED,
        ),
        _gap(
            "erasure-min-corr",
            "min-corr",
            "setting the top quarter of units by MinCorr to zero costs more than the bottom quarter.",
            reported=REPORTED,
        ),
        _gap(
            "erasure-regression",
            "linear-regression",
            "setting the top quarter of units by LinReg to zero costs more than the bottom quarter.",
            reported=REPORTED,
        ),
        _gap(
            "erasure-directions",
            "svcca",
            "projecting out the top directions by SVCCA, a quarter of the number of units, costs more than the bottom "
            "ones.",
            reported="En–Es: 15 BLEU after 1 % of the directions",
        ),
        _gap(
            "erasure-mean",
            "max-corr",
            "setting the top quarter by MaxCorr to their means, which spares units that are merely large, costs more "
            "than the bottom quarter.",
            metric="gap_mean",
            role="extension",
            source="our own control: the paper erases by zero alone",
        ),
        Claim(
            "against-simple-scores",
            "MaxCorr tells top from bottom better than the standard deviation of a unit does, erased by zero.",
            metric="gap",
            method="max-corr",
            baseline="standard-deviation",
            better="higher",
            trivial="random",
            unit=NATS,
            role="extension",
            source="our own question: the paper compares with no simple score",
        ),
        Claim(
            "against-simple-scores-weights",
            "MaxCorr tells top from bottom better than the weights that read a unit do, erased by zero.",
            metric="gap",
            method="max-corr",
            baseline="output-norm",
            better="higher",
            trivial="random",
            unit=NATS,
            role="extension",
            source="our own question, as above",
        ),
        Claim(
            "against-simple-scores-mean",
            "MaxCorr tells top from bottom better than the standard deviation does, erased by the mean.",
            metric="gap_mean",
            method="max-corr",
            baseline="standard-deviation",
            better="higher",
            trivial="random",
            unit=NATS,
            role="extension",
            source="our own question: zero hits large units hardest",
        ),
        Claim(
            "causal-ranking",
            "MaxCorr orders units as their exact single effects do, each set to its mean: rank correlation above 0.3.",
            metric="causal",
            method="max-corr",
            kind="bound",
            at_least=0.3,
            trivial="random",
            unit="Spearman's correlation",
            role="extension",
            source="a reviewer's point: the choice of methods; what users want to know",
        ),
        Claim(
            "causal-ranking-simple",
            "standard deviation times output weights orders units more as their exact single effects do than MaxCorr.",
            metric="causal",
            method="product",
            baseline="max-corr",
            better="higher",
            trivial="random",
            unit="Spearman's correlation",
            role="extension",
            source="our own question",
        ),
    ),
    curves=(
        Curve("top", "fraction", "Loss, erased from the top", "share of units erased", "nats a word"),
        Curve("bottom", "fraction", "Loss, erased from the bottom", "share of units erased", "nats a word"),
        Curve("top_mean", "fraction", "Loss, top set to their means", "share of units erased", "nats a word"),
    ),
    deviations=(
        SETTING,
        "A quarter of the units instead of a tenth, as in the pilot: a tenth of 32 is three. SVCCA compares each model "
        "with the next one and erases as many directions as units; what lies outside the directions kept for 99 % of "
        "the variance is lost in both. LinReg is the mean of R² over the others, which the paper leaves open. "
        "The random order is the mean of eight. Claims that MaxCorr is better than a simple score are worded as its "
        "friends would; the pilots spoke against them. " + PILOTS,
    ),
    guards=(LEARNED,),
    over_seeds="loop",
)

INTERPRETABLE = Experiment(
    "interpretable",
    title="Do the units at the top say something that people have a word for?",
    trial=f"{TRIALS}:interpreted",
    problem=PROBLEM,
    arms=(
        *(Arm(name, RANKINGS[name], ranking=name, task="translate") for name in RANKINGS if name != "svcca"),
        Arm("copying", "models that copy", ranking="max-corr", task="copy"),
    ),
    scales={
        "tiny": Scale(2, block=2, problem=GRAMMARS["tiny"], first=2, **TINY),
        "smoke": Scale(10, block=5, cost=6.0, problem=GRAMMARS["smoke"], first=3, **SMOKE),
        "desk": Scale(10, block=5, cost=35.0, problem=GRAMMARS["desk"], first=4, **DESK),
        "full": Scale(10, block=1, cost=4e6, problem=GRAMMARS["full"], first=10, **FULL),
    },
    claims=(
        Claim(
            "interpretable-units",
            "the unit that tells best whether a word stands in brackets is, in the mean over models, among the first "
            "tenth by MaxCorr.",
            metric="bracket_percentile",
            method="max-corr",
            kind="bound",
            at_most=0.1,
            trivial="random",
            unit="place in the ranking, 0 first, 1 last",
            role="stand-in",
            source="table 2: the parentheses unit",
            reported="rank at most 40 of 500 in 13 of 15 models",
        ),
        Claim(
            "interpretable-units-tense",
            "the best unit for the tense of a verb tells it better in models that translate than in models that copy.",
            metric="tense_f1",
            method="max-corr",
            baseline="copying",
            better="higher",
            unit="F1, mean of both tenses",
            role="stand-in",
            source="the paper's tense unit, which auto-encoders lack",
            reported="F1 of 0.56 in a translator",
        ),
        Claim(
            "interpretable-units-token",
            "the top units by LinReg are explained by the word itself more than those by MaxCorr.",
            metric="token_variance",
            method="linear-regression",
            baseline="max-corr",
            better="higher",
            unit="share of variance explained",
            role="stand-in",
            source="the paper's table of the top units by variance explained",
            reported="LinReg and SVCCA 90–96 % by the word; MaxCorr's top units 88–92 % by the position",
        ),
    ),
    deviations=(
        SETTING,
        "The unit that tells brackets is the one whose variance they explain most; it is chosen without the ranking. "
        "Tense: Gaussians fitted to the first half of the test sentences, where the best unit is chosen too, judged on "
        "the second, at verbs; the mean of both tenses' F1, so that chance has not 2/3 but less than a half. Position "
        "matters to nobody in this language, so the paper's position units are not asked for. " + PILOTS,
    ),
    guards=(LEARNED, KNOWN),
    over_seeds="loop",
)

HOW_MANY = Experiment(
    "how-many-models",
    title="With how many models does a ranking stop depending on which they are?",
    trial=f"{TRIALS}:how_many",
    problem=PROBLEM,
    arms=tuple(Arm(name, RANKINGS[name], ranking=name) for name in ("max-corr", "min-corr", "linear-regression")),
    scales={
        "tiny": Scale(2, block=2, problem=GRAMMARS["tiny"], counts=(1, 2), **TINY),
        "desk": Scale(10, block=5, cost=8.0, problem=GRAMMARS["desk"], counts=(1, 2, 3), **DESK),
        "full": Scale(10, block=1, cost=4e6, problem=GRAMMARS["full"], counts=(1, 2, 4, 8), **FULL),
    },
    claims=(
        Claim(
            "how-many-models",
            "the rankings of a model by two disjoint sets of others, by MaxCorr, are the more alike the more models "
            "are in a set.",
            metric="tau",
            method="max-corr",
            kind="trend",
            better="higher",
            against="log2_models",
            unit="Kendall's τ a doubling of models",
            role="extension",
            source="our own question: the paper has 18 models and does not ask",
        ),
    ),
    curves=(
        Curve("tau", "log2_models", "Agreement of two rankings", "log₂ of the models compared with", "Kendall's τ"),
    ),
    deviations=(SETTING, PILOTS),
    guards=(LEARNED, KNOWN),
    over_seeds="loop",
)

_ATTENTION: dict[str, Any] = {"kind": "attention"}
TRANSFORMER = Experiment(
    "transformer",
    title="And in a transformer?",
    trial=f"{TRIALS}:erased",
    problem=PROBLEM,
    arms=tuple(arm for arm in ARMS if arm.name not in ("ablation", "product")),
    scales={
        "tiny": Scale(2, block=2, problem=GRAMMARS["tiny"], **changed(TINY | _ATTENTION, models=3), **CURVED),
        "desk": Scale(
            5, block=5, cost=45.0, problem=GRAMMARS["desk"], **changed(DESK | _ATTENTION, models=4), **CURVED
        ),
        "full": Scale(
            10,
            block=1,
            cost=4e6,
            problem=GRAMMARS["full"],
            **FULL | _ATTENTION,
            fractions=CURVED["fractions"],
            judged=0.1,
        ),
    },
    claims=(
        Claim(
            "transformer",
            "how do the rankings separate units of a transformer's last layer?",
            metric="gap",
            method="max-corr",
            kind="question",
            better="higher",
            unit=NATS,
            role="extension",
            source="conclusion: other architectures are left for later",
        ),
    ),
    curves=(Curve("top", "fraction", "Loss, erased from the top", "share of units erased", "nats a word"),),
    deviations=(
        "Two layers of causal attention with learned places; the units are those of the normed residual stream before "
        "the decoder, which has no preferred basis but what training gives it. " + SETTING,
    ),
    guards=(LEARNED,),
    over_seeds="loop",
)
