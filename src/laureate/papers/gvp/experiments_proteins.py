"""Geometric vector perceptrons on real backbones: secondary structure, decoys, design, and what each part adds."""

from typing import Any

from laureate.lab.claim import Arm, Claim, Experiment, Scale
from laureate.papers.gvp.experiments import PILOTS

__all__ = ["ABLATIONS", "DECOYS", "DESIGN", "SECONDARY"]

TRIALS = "laureate.papers.gvp.trials_proteins"
PROBLEM = "laureate.problems.proteins:Backbones"
NET: dict[str, Any] = {"dims": (16, 4), "edge_dims": (16, 1), "layers": 2, "dropout": 0.1, "rate": 0.003}
LEAST: dict[str, Any] = {"dims": (4, 2), "edge_dims": (4, 1), "layers": 1, "dropout": 0.1, "rate": 0.003}
WHOLE: dict[str, Any] = {"dims": (100, 16), "edge_dims": (32, 1), "layers": 3, "dropout": 0.1, "rate": 0.001}
MADE = {"data": "made", "num_chains": 5, "length": 12}
REAL = {"data": "protein-chains", "num_chains": 50, "length": 200}
SHORT = {"data": "protein-chains", "num_chains": 50, "length": 80}
CHAINS = (
    "Fifty real chains that ship with the package (protein_chains; in number and residues the set TS50), divided anew "
    "in every seed: forty to learn from, ten to be tested on. Seeds share chains, so that intervals are over divisions "
    "and trainings of these fifty, not over proteins of the world."
)
TRAINING = (
    "Networks of (16, 4) channels and two layers instead of (100, 16) and three, all with the same steps, batches and "
    "rate of Adam, 0.003 falling to 0 as a cosine; none was tuned."
)


def net_arm(name: str, label: str, sees: str = "all", layer: str = "gvp") -> Arm:
    """An arm with a network."""
    return Arm(name, label, model="gvp", sees=sees, layer=layer)


def other_arm(name: str, label: str) -> Arm:
    """An arm without graph layers."""
    return Arm(name, label, model=name, sees="all", layer="gvp")


def scales(tiny: dict, desk: dict, full: dict, seeds: int, cost: float, problem: dict = REAL) -> dict[str, Scale]:
    """The usual three; there is no time for smoke."""
    return {
        "tiny": Scale(2, block=2, problem=MADE, neighbors=4, test=2, steps=2, batch=2, **LEAST, **tiny),
        "desk": Scale(seeds, block=5, cost=cost, problem=problem, test=10, batch=4, **NET, **desk),
        "full": Scale(20, block=1, cost=300 * cost, problem=problem, neighbors=30, test=10, batch=4, **WHOLE, **full),
    }


SECONDARY = Experiment(
    "secondary-structure",
    title="Helix, strand or coil, from the backbone",
    trial=f"{TRIALS}:residue_labels",
    problem=PROBLEM,
    accepts=("chains", "labels", "residues"),
    arms=(
        net_arm("gvp", "GVP-GNN"),
        net_arm("scalars", "the same, all vectors 0", sees="scalars"),
        other_arm("trees", "boosted trees on angles of ±3 residues"),
        other_arm("majority", "the most frequent state"),
    ),
    scales=scales({"window": 3}, {"window": 3, "steps": 150, "neighbors": 8}, {"window": 3, "steps": 4000}, 10, 55.0),
    claims=(
        Claim(
            "secondary-structure",
            "a GVP network names the secondary structure of new chains' residues more often than boosted trees on the "
            "angles of seven residues.",
            metric="accuracy",
            method="gvp",
            baseline="trees",
            better="higher",
            trivial="majority",
            unit="share of residues",
            role="extension",
            source="our own task: real proteins at a size that fits us",
        ),
        Claim(
            "vectors-help",
            "the network is right more often than the same one with all vectors 0.",
            metric="accuracy",
            method="gvp",
            baseline="scalars",
            better="higher",
            trivial="majority",
            unit="share of residues",
            role="stand-in",
            source="table of ablations: only scalars (on design; our task is another)",
            reported="perplexity of design 5.29 with all, 7.31 with only scalars",
        ),
    ),
    deviations=(
        CHAINS,
        TRAINING,
        "Labels are our own three states by the hydrogen bonds of Kabsch and Sander, which agree with those that "
        "MDAnalysisTests carries at 97.7 per cent of residues. They are a function of the coordinates.",
        "The trees are scikit-learn's HistGradientBoostingClassifier as it comes.",
        PILOTS,
    ),
    over_seeds="loop",
)

DECOYS = Experiment(
    "decoys",
    title="Which model of a protein is the better one?",
    trial=f"{TRIALS}:decoys",
    problem=PROBLEM,
    accepts=("chains", "residues"),
    arms=(
        net_arm("gvp", "GVP-GNN"),
        net_arm("scalars", "the same, all vectors 0", sees="scalars"),
        other_arm("contacts", "a line on contacts a residue"),
        other_arm("mean", "the mean"),
    ),
    scales=scales(
        {"decoys": 4}, {"decoys": 10, "steps": 150, "neighbors": 8}, {"decoys": 40, "steps": 15000}, 10, 45.0, SHORT
    ),
    claims=(
        Claim(
            "decoys",
            "within a new chain, a GVP network's scores go with the decoys' quality more closely than those of the "
            "same network with all vectors 0.",
            metric="per_target",
            method="gvp",
            baseline="scalars",
            better="higher",
            trivial="mean",
            unit="Pearson's correlation, mean over chains",
            role="stand-in",
            source="model quality assessment; ablation: only scalars",
            reported="CASP 13, per target: 0.671 (ProQ3D 0.660); CASP 12 stage 2: 0.62 (GraphQA 0.61)",
        ),
        Claim(
            "decoys-contacts",
            "and more closely than the number of contacts.",
            metric="per_target",
            method="gvp",
            baseline="contacts",
            better="higher",
            trivial="mean",
            unit="Pearson's correlation, mean over chains",
            role="extension",
            source="our own question: is a network needed?",
        ),
    ),
    deviations=(
        CHAINS + " Of each chain the first 80 residues.",
        "Ten decoys a chain of our own making, the same in all seeds: noise on all φ and ψ and three large turns, "
        "bonds and bond angles kept; the size is drawn. Quality is GDT-TS after one superposition on all CA, without "
        "the search for the best. The paper has models by many groups (CASP).",
        "The loss is the authors', on two decoys of each of four chains a step.",
        TRAINING,
        PILOTS,
    ),
    over_seeds="loop",
)

DESIGN = Experiment(
    "design",
    title="Which amino acids suit a backbone?",
    trial=f"{TRIALS}:design",
    problem=PROBLEM,
    accepts=("chains", "residues"),
    arms=(
        net_arm("gvp", "GVP-GNN, autoregressive"),
        other_arm("local", "a perceptron on a residue's own angles"),
        other_arm("unigram", "frequencies of amino acids"),
    ),
    scales=scales({}, {"steps": 150, "neighbors": 8}, {"steps": 4000}, 10, 35.0),
    claims=(
        Claim(
            "design",
            "a GVP network gives the real residues of new chains a higher probability than a perceptron on each "
            "residue's own angles.",
            metric="nats",
            method="gvp",
            baseline="local",
            better="lower",
            trivial="unigram",
            unit="nats a residue",
            role="stand-in",
            source="computational protein design, CATH 4.2",
            reported="perplexity 5.29 (1.67 nats), recovery 40.2 %, after 18,000 chains",
        ),
    ),
    deviations=(
        CHAINS,
        "Forty chains instead of 18,000: perplexities are not to be compared with the paper's. Recovery is of the "
        "likeliest residue given the real ones before it, where the paper samples whole sequences.",
        TRAINING,
        PILOTS,
    ),
    over_seeds="loop",
)

ABLATIONS = Experiment(
    "ablations",
    title="What does each part add?",
    trial=f"{TRIALS}:decoys",
    problem=PROBLEM,
    accepts=("chains", "residues"),
    arms=(
        net_arm("gvp", "GVP-GNN"),
        net_arm("gated", "with vector gates", layer="gated"),
        net_arm("scalars", "only scalars", sees="scalars"),
        net_arm("vectors", "only vectors", sees="vectors"),
        net_arm("no-map", "no W_μ", layer="no-map"),
        net_arm("dense", "MLP layers in the GVPs' place", layer="dense"),
        other_arm("mean", "the mean"),
    ),
    scales=scales(
        {"decoys": 4}, {"decoys": 10, "steps": 150, "neighbors": 8}, {"decoys": 40, "steps": 15000}, 3, 40.0, SHORT
    ),
    claims=(
        Claim(
            "ablations",
            "How closely do scores go with the quality of decoys, without each part of the network?",
            metric="per_target",
            method="gvp",
            kind="question",
            unit="Pearson's correlation, mean over chains",
            role="stand-in",
            source="table of ablations",
            reported="perplexity of design: all 5.29, MLP layer 7.76, scalars 7.31, vectors 11.05, no W_μ 5.85",
        ),
    ),
    deviations=(
        "On decoys instead of design, three seeds. Only scalars and only vectors: the others are 0 in the graph, the "
        "network is the same. MLP layers mix all components of vectors, and so do not turn with the input.",
        CHAINS + " Of each chain the first 80 residues.",
        TRAINING,
        PILOTS,
    ),
    over_seeds="loop",
)
