"""Geometric vector perceptrons on real backbones: secondary structure, decoys, design, and what each part adds."""

from typing import Any

from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale
from laureate.papers.gvp.experiments import MANY_RATES, PILOTS, RATES, TRAINING, TWO_RATES

__all__ = ["ABLATIONS", "DECOYS", "DESIGN", "SECONDARY"]

TRIALS = "laureate.papers.gvp.trials_proteins"
PROBLEM = "laureate.problems.proteins:Backbones"
NET: dict[str, Any] = {"dims": (16, 4), "edge_dims": (16, 1), "layers": 2, "dropout": 0.1, "rates": RATES}
LEAST: dict[str, Any] = {"dims": (4, 2), "edge_dims": (4, 1), "layers": 1, "dropout": 0.1, "rates": TWO_RATES}
WHOLE: dict[str, Any] = {"dims": (100, 16), "edge_dims": (32, 1), "layers": 3, "dropout": 0.1, "rates": MANY_RATES}
MADE = {"data": "made", "num_chains": 6, "length": 12}
REAL = {"data": "protein-chains", "num_chains": 50, "length": 200}
SHORT = {"data": "protein-chains", "num_chains": 50, "length": 80}
CHAINS = (
    "The data set is `protein_chains`, fifty real chains of the Protein Data Bank that ship with the package (in "
    "number and residues the set TS50). Eight are for choosing rates alone; the others are divided anew in every seed, "
    "thirty-four to learn from, eight to be tested on. Seeds share chains: intervals are over divisions and trainings "
    "of these fifty, and are narrower than those over proteins of the world would be. At desk of each chain the first "
    "80 residues."
)
NETWORKS = "Networks of (16, 4) channels and two layers instead of (100, 16) and three."
WINDOW: dict[str, Any] = {"window": 3, "tree_rates": (0.03, 0.1, 0.3)}
NETS = ("gvp", "scalars")
BLIND = "The network without vectors is the same one with all vectors of the graph 0; its channels for them stay idle."


def net_arm(name: str, label: str, layer: str = "gvp", scalars: float = 1.0, vectors: float = 1.0) -> Arm:
    """An arm with a network; what the graph's scalars and vectors are multiplied by shares a program."""
    return Arm(name, label, model="gvp", layer=layer, scalars=scalars, vectors=vectors)


def other_arm(name: str, label: str) -> Arm:
    """An arm without graph layers."""
    return Arm(name, label, model=name, layer="gvp", scalars=1.0, vectors=1.0)


def scales(tiny: dict, desk: dict, full: dict, seeds: int, cost: float) -> dict[str, Scale]:
    """The usual three; there is no time for smoke."""
    return {
        "tiny": Scale(2, block=2, problem=MADE, neighbors=4, test=2, batch=2, **LEAST, **tiny),
        "desk": Scale(seeds, block=10, cost=cost, problem=SHORT, test=8, neighbors=8, **NET, **desk),
        "full": Scale(20, block=1, cost=300 * cost, problem=REAL, neighbors=30, test=8, batch=4, **WHOLE, **full),
    }


def chosen(*claims: str) -> Guard:
    """No network's rate may stand at an end of its grid."""
    return Guard("grid", "rate", grid="rates", arms=NETS, claims=claims)


SECONDARY = Experiment(
    "secondary-structure",
    title="Helix, strand or coil, from the backbone",
    trial=f"{TRIALS}:residue_labels",
    problem=PROBLEM,
    accepts=("chains", "labels", "residues"),
    arms=(
        net_arm("gvp", "GVP-GNN"),
        net_arm("scalars", "the same, all vectors 0", vectors=0.0),
        other_arm("trees", "boosted trees on angles of ±3 residues"),
        other_arm("majority", "the most frequent state"),
    ),
    scales=scales(WINDOW | {"steps": 2}, WINDOW | {"steps": 150, "batch": 4}, WINDOW | {"steps": 4000}, 10, 50.0),
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
            role="extension",
            source="our own question, after the ablation on design: only scalars",
        ),
    ),
    guards=(
        chosen("secondary-structure", "vectors-help"),
        Guard("grid", "tree_rate", grid="tree_rates", arms=("trees",), claims=("secondary-structure",)),
    ),
    deviations=(
        CHAINS,
        NETWORKS,
        TRAINING,
        "Labels are our own three states by the hydrogen bonds of Kabsch and Sander, which agree with those that "
        "MDAnalysisTests carries at 97.7 per cent of residues. They are a function of the coordinates.",
        BLIND,
        "The trees are scikit-learn's HistGradientBoostingClassifier, 100 for each state, at the best of three rates, "
        "0.03 to 0.3, chosen once by the same chains. In a first run at desk it was chosen anew in every seed, which "
        "took longer than the networks: 0.878 with vectors, 0.879 without, 0.894 the trees.",
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
        net_arm("scalars", "the same, all vectors 0", vectors=0.0),
        other_arm("contacts", "a line on contacts a residue"),
        other_arm("mean", "the mean"),
    ),
    scales=scales(
        {"decoys": 4, "steps": 2},
        {"decoys": 10, "steps": 120, "batch": 2},
        {"decoys": 40, "steps": 15000},
        10,
        40.0,
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
            source="model quality assessment; GraphQA is a network of scalars",
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
    guards=(chosen("decoys", "decoys-contacts"),),
    deviations=(
        CHAINS,
        "Ten decoys a chain of our own making, the same in all seeds: noise on all φ and ψ and three large turns, "
        "bonds and bond angles kept; the size is drawn. Quality is GDT-TS after one superposition on all CA, without "
        "the search for the best. The paper has models by many groups (CASP).",
        "The loss is the authors', on two decoys of each of two chains a step (full: four). The rate is chosen by the "
        "correlation within chains.",
        BLIND + " Which amino acid a residue is, both know.",
        NETWORKS,
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
        net_arm("scalars", "the same, all vectors 0", vectors=0.0),
        other_arm("local", "a perceptron on a residue's own angles"),
        other_arm("unigram", "frequencies of amino acids"),
    ),
    scales=scales({"steps": 2}, {"steps": 100, "batch": 4}, {"steps": 4000}, 10, 55.0),
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
            role="extension",
            source="our own question, after computational protein design (CATH 4.2)",
            reported="perplexity 5.29 (1.67 nats), recovery 40.2 %",
        ),
        Claim(
            "design-vectors",
            "and a higher one than the same network with all vectors 0.",
            metric="nats",
            method="gvp",
            baseline="scalars",
            better="lower",
            trivial="unigram",
            unit="nats a residue",
            role="stand-in",
            source="table of ablations: only scalars",
            reported="perplexity 5.29 with all (1.67 nats), 7.31 with only scalars (1.99)",
        ),
    ),
    guards=(Guard("grid", "rate", grid="rates", claims=("design", "design-vectors")),),
    deviations=(
        CHAINS,
        "Thirty-four chains instead of all of CATH 4.2: perplexities are not to be compared with the paper's. Recovery "
        "is of the likeliest residue given the real ones before it, where the paper samples whole sequences.",
        BLIND,
        NETWORKS,
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
        net_arm("scalars", "only scalars", vectors=0.0),
        net_arm("vectors", "only vectors", scalars=0.0),
        net_arm("no-map", "no W_μ", layer="no-map"),
        net_arm("dense", "MLP layers in the GVPs' place", layer="dense"),
        other_arm("mean", "the mean"),
    ),
    scales=scales(
        {"decoys": 4, "steps": 2},
        {"decoys": 10, "steps": 120, "batch": 2},
        {"decoys": 40, "steps": 15000},
        3,
        36.0,
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
        "On decoys instead of design, with few seeds. Only scalars and only vectors: the others are 0 in the graph, "
        "the network is the same, and which amino acid a residue is, all know. MLP layers mix all components of "
        "vectors, and so do not turn with the input.",
        CHAINS,
        NETWORKS,
        TRAINING,
        PILOTS,
    ),
    over_seeds="loop",
)
