"""Attacks on a classifier: for those who want to know what accuracy is left."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

STEPS = {"step": (0.05, 0.1, 0.25)}
PLAIN = "PGD(classifier.logits, ball, step_size=step * epsilon, num_steps=budget)"
COPIES = "PGD(classifier.logits, ball, step_size=step * epsilon, num_steps=max(1, budget // {}))"

DISCIPLINE = Discipline(
    name="robustness",
    title="Which attack finds the most mistakes?",
    kind="a classifier with images",
    problem="classifier",
    area="robustness",
    needs={
        "logits": "logits(images): a batch of images to [batch, classes]",
        "images": "[n, height, width, channels] in [0, 1], to be attacked; the first half tunes, the second scores",
        "labels": "their classes, integers from 0",
    },
    offers={
        "epsilon": "the radius of the ball, in the largest change of a pixel; by default 8/255",
        "others": "a list of other classifiers, on which perturbations are tried that were made for this one",
    },
    metrics=(
        Metric(
            "accuracy",
            "share of images that are still classified correctly: what a defender is left with",
            limits=(0.0,),
        ),
        Metric("transferred", "the same, mean over the other classifiers", limits=(0.0,)),
    ),
    unit="gradients an image",
    entrants=(
        Entrant("fgsm", "FGSM(classifier.logits, ball)"),
        Entrant("pgd", PLAIN, STEPS),
        Entrant("pgd-random-start", PLAIN.replace("budget)", "budget, random_start=True)"), STEPS),
        Entrant("pgd-margin", PLAIN.replace("budget)", "budget, loss='margin')"), STEPS),
        Entrant("momentum", f"MI({PLAIN})", STEPS),
        Entrant("diverse-inputs", f"DI({PLAIN})", STEPS),
        Entrant("translation-invariant", f"TI({PLAIN}, side=5)", STEPS),
        Entrant("variance-reduced", f"VR({COPIES.format(4)}, num_copies=4)", STEPS),
        Entrant(
            "interaction-reduced",
            # A step of four subsets takes eleven gradients.
            f"InteractionReduced({COPIES.format(11)}, grid_players((height, width), 4), strength=0.3, num_subsets=4)",
            STEPS,
        ),
    ),
    trial="laureate.racing.tracks.robustness:trial",
    facts="laureate.racing.tracks.robustness:facts",
    script="""
attack = {method}
delta, info = generate(jax.random.key(0), attack, classifier.images, classifier.labels)
print((classifier.logits(classifier.images + delta).argmax(-1) == classifier.labels).mean())
""",
    smallest=20,
    largest=200,
    one_shot=True,
    absent={"SGM": "a way to differentiate residual networks, to be handed to any attack"},
    notes=("a seed draws half of the images; an attack that never draws gives the same on the same images",),
)
