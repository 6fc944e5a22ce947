"""Prediction sets: short lists of labels from the scores of a classifier of one's own."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

CALIBRATORS = (
    "Beta",
    "Constant",
    "HistogramBinning",
    "Identity",
    "Isotonic",
    "NaturalSpline",
    "Platt",
    "SplineCalibrator",
    "Temperature",
)

DISCIPLINE = Discipline(
    name="prediction-sets",
    title="Whose sets of labels are smallest for the promised coverage?",
    kind="scores with labels",
    problem="scored",
    area="uncertainty",
    needs={
        "scores": "logits [rows, classes] of rows that the model was not trained on",
        "labels": "class indices [rows]",
    },
    offers={"alpha": "the share of sets that may miss; by default 0.1"},
    metrics=(
        Metric("size", "mean number of labels in a set"),
        Metric(
            "violation", "largest |coverage - (1 - alpha)| over strata of sizes, of 20 rows or more", "lower", (0.0,)
        ),
        Metric("hard", "coverage where the true label is not the first", "higher", (1.0,)),
        Metric("coverage", "share of sets that hold the true label", "higher", (1.0,)),
    ),
    unit="calibration rows",
    entrants=(
        Entrant("raps", "RAPS(alpha, k_reg=k_reg)", {"k_reg": ("auto", "joint")}),
        Entrant("raps-adaptive", "RAPS(alpha, criterion='adaptive')"),
        Entrant("aps", "APS(alpha)"),
        Entrant("lac", "LAC(alpha)"),
        Entrant("saps", "SAPS(alpha)"),
        Entrant("top-k", "TopK(alpha)"),
    ),
    trial="laureate.racing.tracks.prediction_sets:trial",
    facts="laureate.racing.tracks.prediction_sets:facts",
    script="""
method = {method}.fit(jax.random.key(0), scored.scores, scored.labels)
sets = method.predict_set(jax.random.key(1), scored.scores)  # of new rows: their logits instead
print(sets.sum(axis=1).mean(), method.tau_)
""",
    smallest=200,
    largest=2000,
    one_shot=True,
    absent={
        "NaiveSets": "promises no coverage, so its size cannot be compared",
        "ScoreSets": "needs a score of one's own",
        "PACConfidence": "gives intervals of confidence, not sets: laureate run pac-confidence",
        "SafeCascade": "needs two models",
        "Shield": "needs rollouts of a policy",
    }
    | dict.fromkeys(CALIBRATORS, "makes a calibrated score instead of sets"),
    notes=(
        "all keep the promise; look at --metric hard before the smallest is taken, for small sets are paid for there",
        "a seed draws which rows calibrate and which judge; temperatures and penalties are tuned inside the budget",
    ),
)
