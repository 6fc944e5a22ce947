"""A supernet of one's own: tumours told apart from thirty measurements, by layers that are to be chosen.

Also a problem for the lab: laureate run darts-pt/selection --problem examples/own_supernet.py:Tumours
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.architecture import (
    PerturbationSelection,
    SupernetScore,
    SupernetTraining,
    check_supernet,
    select,
    train_supernet,
)
from laureate.problems.datasets import breast_cancer


class Tumours(eqx.Module):
    """Two layers in a row; each may be left out, passed by, or be one of two kinds. Nothing is inherited from us."""

    inputs: jax.Array
    labels: jax.Array
    test_inputs: jax.Array
    test_labels: jax.Array
    width: int = eqx.field(static=True)

    ops = (("none", "skip", "relu", "sine"), ("none", "skip", "relu"))  # edges may differ

    def __init__(self, width: int = 8):
        measured, benign = breast_cancer()
        order = np.random.default_rng(0).permutation(len(measured))
        measured, benign = measured[order], benign[order]
        measured = (measured - measured[:400].mean(0)) / measured[:400].std(0)
        self.inputs, self.test_inputs = (jnp.asarray(x, jnp.float32) for x in np.split(measured, [400]))
        self.labels, self.test_labels = (jnp.asarray(y, jnp.int32) for y in np.split(benign, [400]))
        self.width = width

    def init(self, key):
        first, kernels, last = jax.random.split(key, 3)
        width = self.width
        params = {
            "first": jax.random.normal(first, (30, width)) / 30**0.5,
            "kernels": jax.random.normal(kernels, (2, 2, width, width)) / width**0.5,
            "last": jax.random.normal(last, (width, 2)) / width**0.5,
        }
        return params, None

    def apply(self, params, state, weights, x, *, key=None, train=True):
        x = x @ params["first"]
        for edge, names in enumerate(self.ops):
            made = {
                "none": jnp.zeros_like(x),
                "skip": x,
                "relu": jax.nn.relu(x @ params["kernels"][edge, 0]),
                "sine": jnp.sin(x @ params["kernels"][edge, 1]),
            }
            x = sum(weights[edge, number] * made[name] for number, name in enumerate(names))
        return x @ params["last"], state


if __name__ == "__main__":
    net = Tumours()
    training = SupernetTraining(net, optax.adam(0.01), alpha_optimiser=optax.adam(0.02))
    data, validation = (net.inputs[:200], net.labels[:200]), (net.inputs[200:], net.labels[200:])
    state = training.init(*net.init(jax.random.key(0)))
    check_supernet(jax.random.key(1), net, state.params, state.net_state, net.inputs[:5])
    state, _ = train_supernet(jax.random.key(2), training, state, data, validation, 200, 32)

    score = SupernetScore(net, state.params, state.net_state, validation, criterion="loss")
    now = [state]

    def tune(key, weights, decided):
        """Fifty more steps with what is decided; score and alpha are then of the tuned supernet."""
        more = {"choice": decided.choice, "kept": decided.kept}
        now[0], _ = train_supernet(
            key, training, now[0]._replace(alpha=decided.alpha), data, validation, 50, 32, **more
        )
        score.params, score.state = now[0].params, now[0].net_state
        return now[0].alpha

    rule = PerturbationSelection(training.space, criterion="loss")
    found = select(jax.random.key(3), rule, state.alpha, score, tune)
    genotype = found.genotype
    if genotype is None:
        raise SystemExit("nothing was decided")
    print(f"chosen: {', '.join(genotype.ops)}; {found.num_scores} networks scored")
    for step in found.history:
        print(f"edge {step.place}: loss without each operation", np.round(step.importance, 3).tolist())
