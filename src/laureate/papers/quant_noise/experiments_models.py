"""Quant-Noise in models that one might ship: a convolutional network on images, a transformer on text."""

from laureate.lab.claim import Arm, Claim, Experiment, Scale
from laureate.papers.quant_noise.experiments import ACCEPTS, GRID, PILOTS, ROWS, SHARED, with_shared

__all__ = ["BYTES", "TEXT"]

BYTES = Experiment(
    "bytes",
    title="Accuracy against bytes on disk: handwritten digits, a convolutional network",
    trial="laureate.papers.quant_noise.trials_images:bytes_and_accuracy",
    problem=ROWS,
    accepts=ACCEPTS,
    arms=(
        Arm("float", "32 bits a weight", kind="float", rate=0.0),
        Arm("int4", "4 bits, rounded", kind="int4", rate=0.0),
        Arm("int4-noise", "4 bits, noise on 50 %", kind="int4", rate=0.5),
        Arm("product", "codebooks in stages", kind="product", rate=0.0),
        Arm("product-noise", "codebooks in stages, noise on 10 %", kind="product", rate=0.1),
        Arm("majority", "the commonest label", kind="majority", rate=0.0),
    ),
    scales={
        "tiny": Scale(
            1, block=1, problem={"data": "digits", "train": 60, "test": 20}, validation=20, channels=2, width=8,
            batch=20, epochs=1, kmeans_steps=1, centroids=2, kernel_centroids=2, tuned=1, fine_tuning=0.1,
            rates=(0.001, 0.003),
        ),
        "desk": Scale(
            12, block=3, cost=170.0, problem={"data": "mnist-5k", "train": 2000, "test": 1000}, validation=500,
            channels=8, width=64, batch=50, epochs=3, kmeans_steps=10, centroids=256, kernel_centroids=32, tuned=30,
            fine_tuning=0.1, rates=(0.001, 0.003, 0.01, 0.03),
        ),
        "full": Scale(
            20, block=5, cost=86400.0, problem={"data": "fashion-mnist", "train": 60000, "test": 10000},
            validation=5000, channels=32, width=256, batch=100, epochs=30, kmeans_steps=15, centroids=256,
            kernel_centroids=256, tuned=1200, fine_tuning=0.1, rates=(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03),
        ),
    },
    claims=(
        Claim(
            "bytes",
            "trained with noise and quantised in stages, the network is at most 1.5 points of accuracy worse than one "
            "of 32 bits that was trained as long.",
            margin=-1.5,
            method="product-noise",
            baseline="float",
            source="abstract",
            reported="EfficientNet-B3: 81.5 % in 46.7 MB, 80.0 % in 3.3 MB",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            "bytes-ratio",
            "the file of the network with codebooks, header and all, is at least 14 times smaller than its weights in "
            "32 bits.",
            metric="ratio",
            method="product-noise",
            kind="bound",
            at_least=14.0,
            unit="bytes before over bytes on disk",
            source="abstract: 46.7 MB to 3.3 MB",
            reported="14.2 times",
            role="check",
        ),
        Claim(
            "bytes-noise",
            "trained with noise and quantised in stages, the network is better than one that was trained without noise "
            "and quantised in the same way, by any amount.",
            method="product-noise",
            baseline="product",
            source="the table of iPQ with and without Quant-Noise",
            reported="79.0 % without, 80.0 % with (as quoted in our note, unverified)",
            role="stand-in",
            **SHARED,
        ),
        Claim(
            "pareto-front",
            "How good is each network at how many kilobytes? Accuracy in %, sizes beside it.",
            method="product-noise",
            kind="question",
            source="a reviewer's point: percentages on the axes of figure 2",
            role="extension",
            **with_shared(trivial="", unit="% accuracy"),
        ),
    ),
    guards=GRID,
    deviations=(
        "1,500 images of MNIST to train on, 500 to choose, 1,000 to test, and two convolutions; the paper has ImageNet "
        "and EfficientNet-B3. Fashion-MNIST at full. Megabytes are 10⁶ bytes. " + PILOTS,
        "Every arm is trained by Adam at every rate of learning of one grid; validation images choose the rate by the "
        "network as it is shipped. The first convolution and the last layer, which are few weights, have 8 bits in all "
        "arms but the first. Codebooks are stored in int8.",
        "Stages: the dense layer, then the kernels of the second convolution; 30 updates after each, with a tenth of "
        "the rate of learning; the few others are rounded at the end. The other arms get these updates as well, at "
        "that rate and with their own noise.",
        "Not at smoke: it trains convolutional networks.",
    ),
    data={"tiny": ("digits",), "desk": ("mnist-5k",), "full": ("fashion-mnist",)},
    over_seeds="loop",
)  # fmt: skip

TEXT = Experiment(
    "text",
    title="A character model with four bits a weight",
    trial="laureate.papers.quant_noise.trials_text:text",
    problem="laureate.problems.classification:Prose",
    accepts=("train", "validation", "test", "num_characters"),
    arms=(
        Arm("rounding", "rounded after training", kind="noise", bits=4, rate=0.0),
        Arm("tenth", "noise on 10 %", kind="noise", bits=4, rate=0.1),
        Arm("half", "noise on 50 %", kind="noise", bits=4, rate=0.5),
        Arm("full", "noise on all", kind="noise", bits=4, rate=1.0),
        Arm("frequencies", "how often each character occurs", kind="frequencies", bits=4, rate=0.0),
    ),
    scales={
        "tiny": Scale(
            2, block=2, compilation="lightest", layers=1, size=8, heads=2, context=8, batch=2, updates=2, windows=4,
            rates=(0.001, 0.003),
        ),
        "desk": Scale(
            10, cost=80.0, layers=2, size=32, heads=2, context=32, batch=16, updates=200, windows=100,
            rates=(0.003, 0.01, 0.03, 0.1),
        ),
        "full": Scale(
            20, cost=86400.0, layers=6, size=256, heads=8, context=128, batch=64, updates=5000, windows=500,
            rates=(0.0001, 0.0003, 0.001, 0.003, 0.01),
        ),
    },
    claims=(
        Claim(
            "text",
            "a transformer trained with noise on half of its weights needs fewer nats a character, with four bits a "
            "weight, than one that was rounded after training, by more than 0.02.",
            metric="loss",
            method="half",
            baseline="rounding",
            margin=0.02,
            unit="nats a character",
            trivial="frequencies",
            source="the table for Wikitext-103",
            reported="perplexity 39.4 rounded, 21.8 with Quant-Noise at int4 (as quoted in our note, unverified)",
            role="stand-in",
        ),
        Claim(
            "text-full-noise",
            "a transformer trained with noise on half of its weights needs fewer nats a character, with four bits a "
            "weight, than one trained with noise on all of them, by any amount.",
            metric="loss",
            method="half",
            baseline="full",
            unit="nats a character",
            trivial="frequencies",
            source="the table for Wikitext-103",
            reported="perplexity 34.1 with all, 21.8 with Quant-Noise at int4 (as quoted in our note, unverified)",
            role="stand-in",
        ),
    ),
    guards=GRID,
    deviations=(
        "Two layers of 32 on 43,000 characters of English (scikit-learn's descriptions of its data sets), a short "
        "training; the paper has 16 layers on Wikitext-103. Embeddings are rounded as all matrices are. " + PILOTS,
        "Every arm is trained by Adam at every rate of learning of one grid; a validation text chooses it by the "
        "rounded model.",
        "Not at smoke: its program takes too long to compile.",
    ),
    data=("descriptions",),
)  # fmt: skip
