"""Your own encoder, your own unlabelled signals: pre-train with DirectPred, watch for collapse, probe with few labels.

python examples/own_encoder.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from laureate.representation import (
    Compose,
    DirectPred,
    Identity,
    Noise,
    Rescale,
    Siamese,
    TimeShift,
    collapse_report,
    fine_tune,
    knn_probe,
    linear_probe,
    two_views,
)

TIME, CHANNELS, CLASSES, DIM = 64, 2, 4, 16


class Encoder(eqx.Module):
    """Any Equinox module will do; this one has two layers, and a projector that is thrown away after training."""

    layers: tuple[eqx.nn.Linear, eqx.nn.Linear]
    projector: tuple[eqx.nn.Linear, eqx.nn.Linear]

    def __init__(self, key):
        keys = jax.random.split(key, 4)
        self.layers = eqx.nn.Linear(TIME * CHANNELS, 128, key=keys[0]), eqx.nn.Linear(128, 64, key=keys[1])
        self.projector = (
            eqx.nn.Linear(64, 64, key=keys[2]),
            eqx.nn.Linear(64, DIM, use_bias=False, key=keys[3]),
        )

    def features(self, signal):
        for layer in self.layers:
            signal = jax.nn.relu(layer(signal.ravel()))
        return signal


def features(encoder, signals):
    return jax.vmap(encoder.features)(signals)


def outputs(encoder, signals):
    """What is trained on: the projector's output, normalised in between over the batch.

    Leave the normalisation out and DirectPred collapses within a hundred steps: the outputs' mean is then their largest
    direction, and the same vector for all is the easiest way to agree. The monitor says so; try it.
    """
    first, last = encoder.projector
    hidden = jax.vmap(first)(features(encoder, signals))
    hidden = (hidden - hidden.mean(0)) / (hidden.std(0) + 1e-3)
    return jax.vmap(last)(jax.nn.relu(hidden))


def signals(key, number):
    """Vibrations of four kinds of bearing: the pitch of two tones tells the kind, at any phase and loudness."""
    keys = jax.random.split(key, 4)
    kinds = jax.random.randint(keys[0], (number,), 0, CLASSES)
    pitch = jnp.array([[2, 7], [2, 9], [3, 7], [3, 9]])[kinds]  # turns in the window, a channel each
    phase = jax.random.uniform(keys[1], (number, 1, CHANNELS), maxval=2 * jnp.pi)
    loudness = jnp.exp(0.3 * jax.random.normal(keys[2], (number, 1, CHANNELS)))
    angle = 2 * jnp.pi * jnp.arange(TIME)[None, :, None] / TIME * pitch[:, None, :] + phase
    return loudness * jnp.sin(angle) + 0.5 * jax.random.normal(keys[3], (number, TIME, CHANNELS)), kinds


# What does not change the kind of bearing: when we began to listen, how loud it is, noise.
VIEW = Compose(TimeShift(TIME // 2), Rescale(0.3), Noise(0.3))


monitor = jax.jit(collapse_report)


def pretrain(key, predictor, unlabelled, steps, batch=128, reports=4):
    """Train on pairs of views, and print what the monitor says on the way."""
    siamese = Siamese(predictor, optax.sgd(0.05, momentum=0.9), momentum=0.99, apply=outputs)
    state = siamese.init(key, Encoder(jax.random.fold_in(key, 1)))

    @eqx.filter_jit
    def some_steps(state, first):
        def step(arrays, t):
            draw = jax.random.fold_in(key, t)
            chosen = unlabelled[jax.random.randint(draw, (batch,), 0, len(unlabelled))]
            state, info = siamese.step(eqx.combine(arrays, rest), *two_views(draw, VIEW, chosen))
            return eqx.filter(state, eqx.is_array), info.loss

        arrays, rest = eqx.partition(state, eqx.is_array)
        arrays, losses = jax.lax.scan(step, arrays, first + jnp.arange(steps // reports))
        return eqx.combine(arrays, rest), losses.mean()

    report = None
    for i in range(reports):
        state, loss = some_steps(state, jnp.asarray(i * (steps // reports)))
        report = monitor(outputs(state.online, unlabelled[:1000]))
        warning = "  COLLAPSED" if report.collapsed else ""
        print(
            f"  step {int(state.step):5d}  loss {float(loss):.3f}  spread {float(report.spread):.2f}"
            f"  effective rank {float(report.effective_rank):.1f} of {DIM}{warning}"
        )
    return state.online, report


@eqx.filter_jit
def probe(key, encoder, labelled, test):
    """Frozen features by logistic regression and nearest neighbours, and all of it trained; with 95 % intervals."""
    (x, y), (test_x, test_y) = labelled, test
    known, asked = features(encoder, x), features(encoder, test_x)
    settings = {"optimiser": optax.adam(1e-3), "num_steps": 200, "batch": 32, "apply": features}
    return {
        "linear probe": linear_probe(known, y, asked, test_y, CLASSES),
        "nearest neighbours": knn_probe(known, y, asked, test_y, CLASSES, k=5),
        "fine-tuned": fine_tune(key, encoder, x, y, test_x, test_y, CLASSES, **settings),
    }


def main(steps=2000):
    key = jax.random.key(0)
    unlabelled, _ = signals(jax.random.fold_in(key, 1), 4000)
    labelled, test = signals(jax.random.fold_in(key, 2), 40), signals(jax.random.fold_in(key, 3), 2000)
    encoders, reports = {"random": Encoder(jax.random.fold_in(key, 1))}, {}
    for name, predictor in (("DirectPred", DirectPred(DIM)), ("no predictor", Identity(DIM))):
        print(name)
        encoders[name], reports[name] = pretrain(key, predictor, unlabelled, steps)
    found = {name: probe(key, encoder, labelled, test) for name, encoder in encoders.items()}
    print("with 40 labels:")
    for name, probes in found.items():
        for kind, share in probes.items():
            print(f"  {name:<12} {kind:<18} {share.value:.3f}  ({share.low:.3f} to {share.high:.3f})")
    return found, reports


if __name__ == "__main__":
    main()
