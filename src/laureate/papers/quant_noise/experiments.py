"""Quant-Noise on small networks: against rounding, against full noise, and with codebooks."""

from typing import Any

from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale

__all__ = ["BITS", "PRODUCT", "TWO_BITS"]

TRIALS = "laureate.papers.quant_noise.trials"
ROWS = "laureate.problems.classification:ImageRows"
ACCEPTS = ("inputs", "labels", "test_inputs", "test_labels", "num_classes")
RATES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
PILOTS = "The method note's pilots, on a synthetic task, were known when this was declared."
TUNED = (
    "Every arm is trained by Adam at every rate of learning of one grid; validation rows choose the rate by the "
    "quantised network, test rows are reported. The paper tunes the rate of noise; here it is fixed beforehand, 0.5 "
    "for rounding and 0.1 for codebooks. "
)
SMALL = (
    "A perceptron with two hidden layers on scikit-learn's digits; the paper has transformers on Wikitext-103 and "
    "EfficientNet-B3 on ImageNet. Scales are those of the weights at every step, not of a histogram every 3,000, so "
    "no weight is beyond its range; the released code clamps all weights to an old range, ours the selected ones. "
    "Weights are selected independently with a probability that is p to 1/256 in one step and exactly p on average. "
)
SHARED: dict[str, Any] = {"metric": "accuracy", "better": "higher", "unit": "points", "trivial": "majority"}
GRID = (Guard("grid", "rate", grid="rates"),)


def with_shared(**other: Any) -> dict[str, Any]:
    """What claims share, but for some fields."""
    return SHARED | other


MAJORITY: dict[str, Any] = {"kind": "majority", "bits": 8, "rate": 0.0, "begin": 0.0}


def _noise(bits: int, rate: float, begin: float = 0.0) -> dict[str, Any]:
    return {"kind": "noise", "bits": bits, "rate": rate, "begin": begin}


def rows(width: int, updates: int, rates: tuple[float, ...] = RATES) -> dict[str, Any]:
    return {"validation": 300, "width": width, "hidden": 2, "batch": 64, "updates": updates, "rates": rates}


TINY: dict[str, Any] = {"problem": {"train": 60, "test": 20}, "compilation": "lightest", "block": 2}
TINY_ROWS = {"validation": 20, "width": 8, "hidden": 1, "batch": 8, "updates": 3, "rates": RATES[2:4]}

TWO_BITS = Experiment(
    "two-bits",
    title="Two bits a weight: rounding after training, noise in training, and noise everywhere",
    trial=f"{TRIALS}:scalar",
    problem=ROWS,
    accepts=ACCEPTS,
    arms=(
        Arm("rounding", "rounded after training", **_noise(2, 0.0)),
        Arm("tenth", "noise on 10 %", **_noise(2, 0.1)),
        Arm("half", "noise on 50 %", **_noise(2, 0.5)),
        Arm("full", "noise on all: quantisation-aware training", **_noise(2, 1.0)),
        Arm("late-half", "50 % in the last tenth of training", **_noise(2, 0.5, 0.9)),
        Arm("late-full", "all in the last tenth of training", **_noise(2, 1.0, 0.9)),
        Arm("majority", "the commonest label", **MAJORITY),
    ),
    scales={
        "tiny": Scale(2, **TINY, **TINY_ROWS),
        "smoke": Scale(10, cost=20.0, **rows(64, 150)),
        "desk": Scale(20, cost=25.0, **rows(64, 500)),
        "full": Scale(50, cost=3600.0, **rows(512, 4000)),
    },
    claims=(
        Claim(
            "beats-rounding",
            "a network trained with noise on half of its weights is better with two bits a weight than one that was "
            "trained without and then rounded, by more than 5 points of accuracy.",
            method="half",
            baseline="rounding",
            margin=5.0,
            source="tables for int4 and int8: against rounding after training",
            reported="int4, ImageNet: 45.3 % rounded, 67.8 % with Quant-Noise (as quoted in our note, unverified)",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            "against-full-noise",
            "with two bits a weight, noise on half of the weights beats noise on all of them (quantisation-aware "
            "training), by any amount.",
            method="half",
            baseline="full",
            source="tables for int4 and int8: noise on a part against noise on all",
            reported="int4, ImageNet: 59.4 % with all, 67.8 % with Quant-Noise (as quoted in our note, unverified)",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            "fine-tune",
            "with two bits a weight, noise in the last tenth of training alone makes the rounded network better than "
            "none, by more than 1 point.",
            method="late-half",
            baseline="rounding",
            margin=1.0,
            source="the paper fine-tunes trained networks with noise",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            "fine-tune-enough",
            "with two bits a weight, noise in the last tenth of training leaves the network at most 1 point behind "
            "noise all the time.",
            method="late-half",
            baseline="half",
            margin=-1.0,
            source="our own question: is the last tenth enough?",
            role="extension",
            **SHARED,
        ),
        Claim(
            "regularises",
            "What does noise do to the network that is not rounded?",
            metric="float_accuracy",
            method="half",
            kind="question",
            unit="% accuracy",
            source="our own question",
            role="extension",
        ),
    ),
    guards=GRID,
    deviations=(
        TUNED,
        SMALL,
        PILOTS,
        "Declared first with three bits. At smoke rounding to three bits cost these networks nothing, so that nothing "
        "could be decided; two bits took their place, and the claims of three bits stand with those of four.",
    ),
    data=("digits",),
)


def _of_bits(bits: int) -> tuple[Arm, ...]:
    return (
        Arm(f"rounding-{bits}", f"{bits} bits, rounded", **_noise(bits, 0.0)),
        Arm(f"half-{bits}", f"{bits} bits, noise on 50 %", **_noise(bits, 0.5)),
        Arm(f"full-{bits}", f"{bits} bits, noise on all", **_noise(bits, 1.0)),
    )


def _beats(bits: int, word: str, margin: float) -> tuple[Claim, ...]:
    amount = f"more than {margin:g} points" if margin else "any amount"
    return (
        Claim(
            f"beats-rounding-{word}-bits",
            f"with {word} bits, noise on half of the weights beats rounding after training by {amount}.",
            method=f"half-{bits}",
            baseline=f"rounding-{bits}",
            margin=margin,
            source="tables for int4 and int8",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            f"against-full-noise-{word}-bits",
            f"with {word} bits, noise on half of the weights beats noise on all of them, by any amount.",
            method=f"half-{bits}",
            baseline=f"full-{bits}",
            source="tables for int4 and int8",
            role="stand-in",
            **SHARED,
        ),
    )


BITS = Experiment(
    "bits",
    title="Three, four and eight bits a weight",
    trial=f"{TRIALS}:scalar",
    problem=ROWS,
    accepts=ACCEPTS,
    arms=(*_of_bits(3), *_of_bits(4), *_of_bits(8), Arm("majority", "the commonest label", **MAJORITY)),
    scales={
        "tiny": Scale(2, **TINY, **TINY_ROWS),
        "desk": Scale(10, cost=20.0, **rows(64, 500)),
        "full": Scale(50, cost=5400.0, **rows(512, 4000)),
    },
    claims=(
        *_beats(3, "three", 2.0),
        *_beats(4, "four", 0.0),
        Claim(
            "eight-bits-alike",
            "with eight bits the rate of noise does not matter: half and all differ by less than 1 point.",
            kind="equal",
            margin=1.0,
            method="half-8",
            baseline="full-8",
            source="the paper's study of the rate of noise: int8 is insensitive to it",
            reported="int8, ImageNet: 80.8 % with all, 80.9 % with Quant-Noise (as quoted in our note, unverified)",
            role="stand-in",
            **SHARED,
        ),
    ),
    guards=GRID,
    deviations=(TUNED, SMALL, PILOTS, "Not at smoke: three more programs."),
    data=("digits",),
)

PRODUCT = Experiment(
    "product",
    title="Codebooks: blocks of eight weights written as one code",
    trial=f"{TRIALS}:product",
    problem=ROWS,
    accepts=ACCEPTS,
    arms=(
        Arm("none", "quantised after training", kind="exact", rate=0.0, stages=0),
        Arm("tenth", "noise on 10 %", kind="exact", rate=0.1, stages=0),
        Arm("half", "noise on 50 %", kind="exact", rate=0.5, stages=0),
        Arm("full", "noise on all", kind="exact", rate=1.0, stages=0),
        Arm("proxy", "10 % of the blocks dropped", kind="zero", rate=0.1, stages=0),
        Arm("rescaled", "10 % dropped, the others rescaled", kind="rescaled", rate=0.1, stages=0),
        Arm("iterative", "no noise, quantised in stages", kind="exact", rate=0.0, stages=1),
        Arm("iterative-tenth", "noise on 10 %, in stages", kind="exact", rate=0.1, stages=1),
        Arm("majority", "the commonest label", kind="majority", rate=0.0, stages=0),
    ),
    scales={
        "tiny": Scale(
            2,
            **TINY,
            **TINY_ROWS,
            block_length=4,
            centroids=2,
            kmeans_steps=1,
            epochs=2,
            tuned=2,
            fine_tuning=0.1,
        ),
        "desk": Scale(
            10,
            cost=25.0,
            **rows(64, 20),
            block_length=8,
            centroids=32,
            kmeans_steps=10,
            epochs=25,
            tuned=40,
            fine_tuning=0.1,
        ),
        "full": Scale(
            50,
            cost=14400.0,
            **rows(512, 20),
            block_length=8,
            centroids=256,
            kmeans_steps=15,
            epochs=200,
            tuned=400,
            fine_tuning=0.1,
        ),
    },
    claims=(
        Claim(
            "product-quantisation",
            "noise on a tenth of the blocks makes the network with codebooks better than training without, by more "
            "than 1 point.",
            method="tenth",
            baseline="none",
            margin=1.0,
            source="abstract: extreme compression with codebooks",
            reported="ImageNet 79.0 % without, 80.0 % with (in stages; as quoted in our note, unverified)",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            "product-full-noise",
            "with codebooks, noise on a tenth of the blocks is better than noise on all of them, by any amount.",
            method="tenth",
            baseline="full",
            source="tables for product quantisation: noise on a part against noise on all",
            reported="ImageNet 55.7 % with all, 80.0 % with Quant-Noise (in stages; as quoted in our note, unverified)",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            "pareto",
            "with codebooks, noise on half of the blocks keeps a better network before quantisation than noise on all, "
            "by more than 5 points.",
            margin=5.0,
            method="half",
            baseline="full",
            source="our own question, after the pilots: one network for both uses",
            role="extension",
            **with_shared(metric="float_accuracy"),
        ),
        Claim(
            "pareto-quantised",
            "with codebooks, noise on half of the blocks is at most 2 points worse than noise on all.",
            margin=-2.0,
            method="half",
            baseline="full",
            source="our own question, after the pilots",
            role="extension",
            **SHARED,
        ),
        Claim(
            "proxy",
            "dropping a tenth of the blocks is as good as quantising them: the networks with codebooks differ by less "
            "than 2 points.",
            kind="equal",
            margin=2.0,
            method="proxy",
            baseline="tenth",
            source="the released code's default: blocks are dropped, which costs less",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            "proxy-rescale",
            "without rescaling the other blocks the network is better than with it, by any amount.",
            method="proxy",
            baseline="rescaled",
            source="our own question: the released code rescales",
            role="extension",
            **SHARED,
        ),
        Claim(
            "iterative",
            "quantised in stages with fine-tuning, the network that was trained with noise on a tenth of its blocks is "
            "better than the one without, by any amount.",
            method="iterative-tenth",
            baseline="iterative",
            source="the tables of iPQ with and without Quant-Noise",
            reported="Wikitext-103: perplexity 25.2 without, 20.7 with, at 38 MB",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            "rates",
            "How do the rate and the kind of noise change the network with codebooks?",
            method="tenth",
            kind="question",
            source="the paper's study of the rate of noise",
            role="extension",
            **with_shared(trivial="", unit="% accuracy"),
        ),
    ),
    guards=GRID,
    deviations=(
        TUNED,
        SMALL,
        PILOTS + " There 32 centroids cost a perceptron most of its accuracy; 32 are kept.",
        "Codebooks are fitted anew at the start of every epoch of 20 updates, and codes stay until the next. That "
        "hurts noise on all blocks most: what it computes does not change within an epoch.",
        "Fine-tuning in stages: the first layer, then the second, then the last, with a tenth of the rate of learning.",
        "Not at smoke: its programs take a minute to compile.",
    ),
    data=("digits",),
)
