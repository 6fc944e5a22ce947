"""Your own operator: find the spikes behind a blurred recording, such as echoes, photons or the beats of neurons.

    python examples/own_dictionary.py
    laureate run alista/recovery --problem examples/own_dictionary.py:dictionary

The operator is a convolution with the detector's response, known as two functions: blur, and its adjoint. ALISTA needs
no more. ``dictionary`` gives the same to Laureate's comparison: an object with a dictionary and a sampler of codes.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from laureate.recovery import ALISTA, FISTA, fit, nmse_db

TIME, STEP = 120, 2  # spikes may stand at any of 120 moments; the detector reads out every second one


class Detector(eqx.Module):
    """A response that rises at once and falls slowly, read out every second moment."""

    response: jax.Array
    shape = (TIME // STEP, TIME)

    def __init__(self):
        t = jnp.arange(TIME)
        response = jnp.exp(-t / 3.0) * jnp.cos(t / 1.5)
        self.response = response / jnp.linalg.norm(response)

    def matvec(self, x):
        """What is read out for spikes x [TIME]."""
        spectrum = jnp.fft.rfft(x, 2 * TIME) * jnp.fft.rfft(self.response, 2 * TIME)
        return jnp.fft.irfft(spectrum, 2 * TIME)[:TIME:STEP]

    def rmatvec(self, r):
        """Its adjoint: readings put back in their places, correlated with the response."""
        spread = jnp.zeros(TIME).at[::STEP].set(r)
        spectrum = jnp.fft.rfft(spread, 2 * TIME) * jnp.conj(jnp.fft.rfft(self.response, 2 * TIME))
        return jnp.fft.irfft(spectrum, 2 * TIME)[:TIME]


def spikes(key, number):
    """A few positive spikes of different height."""
    where, height = jax.random.split(key)
    chosen = jax.random.uniform(where, (number, TIME)) < 0.03
    return jnp.where(chosen, jax.random.uniform(height, chosen.shape, minval=0.5, maxval=2.0), 0.0)


class Spikes:
    """The same for ``laureate run alista/recovery --problem``: a dictionary, a sampler, and how dense codes are."""

    density = 0.03

    def dictionary(self, key):
        return Detector()

    def sample(self, key, number):
        return spikes(key, number)


def dictionary():
    return Spikes()


def main(steps=300, layers=12):
    key = jax.random.key(0)
    solver = ALISTA(Detector(), num_layers=layers, normalise=True)
    train = eqx.filter_jit(
        lambda key, solver: fit(key, solver, spikes, optimiser=optax.adam(0.01), num_steps=steps, snr=40)
    )
    trained, _ = train(key, solver)
    x = spikes(jax.random.fold_in(key, 1), 500)
    b = solver.synthesise(x)
    errors = {"ALISTA, trained": nmse_db(trained(b), x), "ALISTA, not trained": nmse_db(solver(b), x)}
    for iterations in (layers, 10 * layers):
        tried = [
            nmse_db(FISTA(Detector(), iterations, penalty=p, normalise=True)(b), x) for p in (0.1, 0.03, 0.01, 0.003)
        ]
        errors[f"FISTA, {iterations} iterations"] = jnp.min(jnp.stack(tried))
    for name, error in errors.items():
        print(f"{name:<24} {float(error):6.1f} dB")
    return {name: float(error) for name, error in errors.items()}


if __name__ == "__main__":
    main()
