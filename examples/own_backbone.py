"""One's own protein: read the file, make the graph, propose sequences, and learn a label of each residue.

    python examples/own_backbone.py mine.pdb     (needs gemmi: pip install 'laureate[structures]'); without a file, a
                                                 chain built from angles

Also a problem for the lab: laureate run gvp/secondary-structure --problem examples/own_backbone.py:Buried
"""

import sys

import equinox as eqx
import jax
import numpy as np

from laureate.graphs import AMINO_ACIDS, DesignModel, featurize_backbone, pad_to_bucket, read_backbone
from laureate.problems.proteins import build_backbone, protein_chains


class Buried:
    """A label of one's own for each residue: has it many other residues near it?"""

    def __init__(self):
        found = protein_chains()
        self.chains = [chain.coords for chain in found]
        self.residues = [chain.residues for chain in found]
        self.labels = [self.is_buried(coords[:, 1]) for coords in self.chains]

    @staticmethod
    def is_buried(alpha):
        apart = np.linalg.norm(alpha[:, None] - alpha[None], axis=-1)
        return ((apart < 10.0).sum(1) > 16).astype(int)


def main(path=None, steps=30):
    if path:
        read = read_backbone(path)
        coords, chains, residues = read.coords, read.chains, read.residues
    else:
        coords = build_backbone(np.full(24, np.deg2rad(-57)), np.full(24, np.deg2rad(-47)))
        chains, residues = ["A"] * 24, np.arange(24) % 20
    graph, report = featurize_backbone(coords, chains, num_neighbours=10)
    print(f"{graph.num_nodes} residues, {report.num_missing} left out, {report.num_breaks} interruptions")
    graph = pad_to_bucket(graph)  # another chain of about this length needs no new program
    known = np.zeros(graph.num_nodes, int)
    known[: len(report.residues)] = np.maximum(residues[report.residues], 0)

    model = eqx.filter_jit(DesignModel)(jax.random.key(0), node_dims=(16, 4), num_layers=1)

    @eqx.filter_jit
    def step(model, key):
        def loss(model):
            logits = jax.nn.log_softmax(model(graph, known, key))
            right = jax.numpy.take_along_axis(logits, known[:, None], 1)[:, 0]
            return -jax.numpy.sum(right * graph.node_mask) / graph.node_mask.sum()

        value, slope = eqx.filter_value_and_grad(loss)(model)
        return eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, slope)), value

    values = []
    for index in range(steps):
        model, value = step(model, jax.random.fold_in(jax.random.key(1), index))
        values.append(float(value))
    print(f"nats a residue: {values[0]:.1f}, then {values[-1]:.1f}")
    drawn, _ = eqx.filter_jit(lambda model, key: model.sample(key, graph, 2, 0.1, num_incoming=10))(
        model, jax.random.key(2)
    )
    sequences = ["".join(AMINO_ACIDS[kind] for kind in row[: len(report.residues)]) for row in np.asarray(drawn)]
    print("\n".join(sequences))
    return values, sequences


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
