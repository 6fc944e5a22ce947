"""Calibration: the confidence of a trained classifier made to match how often it is right."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

OTHERS = ["APS", "LAC", "NaiveSets", "PACConfidence", "RAPS", "SAPS", "SafeCascade", "ScoreSets", "Shield", "TopK"]

DISCIPLINE = Discipline(
    name="calibration",
    title="Which map makes this confidence true?",
    kind="probabilities with labels",
    problem="scored",
    area="uncertainty",
    needs={
        "probabilities": "[rows, classes] of rows that the classifier was not trained on, in random order",
        "labels": "their classes, integers from 0; the first half of the rows fits and tunes, the second scores",
    },
    metrics=(
        Metric("brier", "Brier score of the largest probability", "lower"),
        Metric("nll", "negative log-likelihood of its hits, in nats", "lower"),
        Metric("ks", "KS calibration error; a constant is good at it", "lower"),
    ),
    unit="rows to fit",
    entrants=(
        Entrant("spline", "SplineCalibrator(knots)", {"knots": (3, 4, 6, 9, 13, 20)}, natural={"knots": "low"}),
        Entrant("spline-monotone", "SplineCalibrator(knots, monotone=True)", {"knots": (3, 4, 6, 9, 13, 20)},
                natural={"knots": "low"}),
        Entrant("temperature", "Temperature()"),
        Entrant("platt", "Platt()"),
        Entrant("beta", "Beta()"),
        Entrant("isotonic", "Isotonic()"),
        Entrant("histogram", "HistogramBinning(bins)", {"bins": (3, 5, 10, 20, 40, 80)}),
        Entrant("none", "Identity()"),
        Entrant("constant", "Constant()"),
    ),
    trial="laureate.racing.tracks.calibration:trial",
    facts="laureate.racing.tracks.calibration:facts",
    script="""
p, y = top_scores(scored.probabilities, scored.labels)
map = {method}.fit(p, y)
print(ks_test(p, y), map.transform(p)[:10])
""",
    smallest=50,
    one_shot=True,
    absent=dict.fromkeys(OTHERS, "makes sets or intervals instead of a calibrated score"),
    notes=(
        "temperature is fitted to the largest probability alone here, as all others are",
        "judge by --metric ks only beside the Brier score: a constant is calibrated and tells nothing apart",
    ),
)  # fmt: skip
