"""What computes: errors of gradients that enumeration knows, and a model whose bound enumeration knows."""

import jax
import jax.numpy as jnp
import optax

from laureate.gradients import (
    all_choices,
    estimate,
    exact_gradient,
    gumbel_rao,
    rloo,
    st_gumbel_softmax,
    straight_through,
    zgr,
)
from laureate.gradients.categorical_reference import held_against

__all__ = ["gradient", "samples", "temperature", "vae"]

FLOOR = 1e-9  # under a logarithm: the variance of the gradient 0


def network(key, options, spread):
    """A random function of one choice, 32 tanh units, and random logits."""
    first, second, third, fourth = jax.random.split(key, 4)
    inner, bias = jax.random.normal(first, (32, options)), jax.random.normal(second, (32,))
    outer = jax.random.normal(third, (32,))
    return lambda z: outer @ jnp.tanh(inner @ z + bias), spread * jax.random.normal(fourth, (options,))


def chosen(arm):
    """The estimator of an arm, from key and logits to a one-hot."""
    made = {
        "gumbel-rao": lambda key, logits: gumbel_rao(key, logits, arm.temperature, arm.samples),
        "st-gumbel": lambda key, logits: st_gumbel_softmax(key, logits, arm.temperature),
        "straight-through": straight_through,
        "zgr": zgr,
        "total-derivative": lambda key, logits: total_derivative(key, logits, arm.temperature, arm.samples),
    }
    return made[arm.estimator]


def total_derivative(key, logits, temperature, number):
    """The wrong reading: the derivative is also taken through the draw given the option."""
    draw, noise = jax.random.split(key)
    index = jnp.argmax(logits + jax.random.gumbel(draw, logits.shape), axis=-1)
    one_hot = jax.nn.one_hot(index, logits.shape[-1])
    # y_i = ln Z − ln E_i, y_j = −ln(E_j e^{−θ_j} + E_i/Z), with the E fixed and θ moving.
    e = jnp.log(jnp.maximum(jax.random.exponential(noise, (number, *logits.shape)), 1e-30))
    chosen_e = jnp.sum(one_hot * e, axis=-1, keepdims=True)
    total = jax.nn.logsumexp(logits, axis=-1, keepdims=True)
    y = jnp.where(one_hot > 0, total - chosen_e, -jnp.logaddexp(e - logits, chosen_e - total))
    relaxed = jnp.mean(jax.nn.softmax(y / temperature), axis=0)
    return one_hot + relaxed - jax.lax.stop_gradient(relaxed)


def gradient(key, arm, problem, scale):
    """Bias, variance and error of an arm's gradient of one random function, relative to the exact gradient's size."""
    made, draws = jax.random.split(key)
    f, logits = network(made, scale.options, scale.spread)
    exact = exact_gradient(f, logits)
    if arm.estimator == "zero":
        mean, info = held_against(jnp.zeros((2, *logits.shape)), exact)
    elif arm.estimator == "rloo":
        each = jax.vmap(lambda key: rloo(key, f, logits, 2))(jax.random.split(draws, scale.repeats))
        mean, info = held_against(each, exact)
    else:
        mean, info = estimate(draws, f, logits, chosen(arm), scale.repeats)
    return {
        "along": jnp.sum(mean * exact) / info.size2,
        "bias2": info.bias2 / info.size2,
        "log_variance": jnp.log(info.variance / info.size2 + FLOOR),
        "log_error": jnp.log(info.mse / info.size2),
    }


def samples(key, arm, problem, scale):
    """The variance against the number of samples."""
    made, draws = jax.random.split(key)
    f, logits = network(made, scale.options, scale.spread)
    logs = []
    for number in scale.samples:
        estimator = lambda key, logits, number=number: gumbel_rao(key, logits, arm.temperature, number)  # noqa: E731
        info = estimate(draws, f, logits, estimator, scale.repeats)[1]
        logs.append(jnp.log(info.variance / info.size2))
    return {"log_variances": jnp.stack(logs), "log_samples": jnp.log(jnp.asarray(scale.samples, float))}


def temperature(key, arm, problem, scale):
    """How many times smaller the variance is than that of straight-through Gumbel-softmax, against the temperature."""
    made, draws = jax.random.split(key)
    f, logits = network(made, scale.options, scale.spread)

    def ratio(tau):
        ours = estimate(draws, f, logits, lambda k, z: gumbel_rao(k, z, tau, scale.samples), scale.repeats)[1]
        theirs = estimate(draws, f, logits, lambda k, z: st_gumbel_softmax(k, z, tau), scale.repeats)[1]
        return jnp.log(theirs.variance / ours.variance)

    taus = jnp.asarray(scale.temperatures, float)
    return {"log_ratio": jax.lax.map(ratio, taus), "log_temperature": jnp.log(taus)}


def vae(key, arm, problem, scale):
    """Train a categorical autoencoder at every rate and temperature; the bound of test rows, by enumeration."""
    order, start, run = jax.random.split(key, 3)
    rows = (1 + problem.spins[jax.random.permutation(order, len(problem.spins))]) / 2
    held = max(1, len(rows) // 7)
    known, chosen_by, test = rows[held:], rows[:held], (1 + problem.test_spins) / 2
    choices = all_choices(scale.variables, scale.options)
    optimiser = optax.scale_by_adam()
    first = initial(start, rows.shape[1], scale)

    def bound(params, x):
        return jnp.mean(enumerated_bound(params, x, choices))

    def trained(rate, tau):
        def step(carry, key):
            params, state = carry
            at, draw = jax.random.split(key)
            x = known[jax.random.randint(at, (scale.batch,), 0, len(known))]
            grads = jax.grad(lambda params: surrogate(draw, arm, tau, params, x, choices))(params)
            updates, state = optimiser.update(grads, state)
            return (jax.tree.map(lambda p, u: p - rate * u, params, updates), state), None

        (params, _), _ = jax.lax.scan(step, (first, optimiser.init(first)), jax.random.split(run, scale.steps))
        return bound(params, chosen_by), bound(params, test)

    rates, taus = jnp.asarray(scale.rates), jnp.asarray(scale.temperatures if uses_temperature(arm) else (1.0,))
    valid, tested = jax.vmap(lambda tau: jax.vmap(lambda rate: trained(rate, tau))(rates))(taus)  # [taus, rates]
    valid = jnp.where(jnp.isfinite(valid), valid, -1e9)
    best = jnp.argmax(valid, axis=1)  # the rate of each temperature
    at = jnp.argmax(jnp.max(valid, axis=1))
    bounds = jnp.maximum(jnp.take_along_axis(tested, best[:, None], axis=1)[:, 0], -scale.worst)
    every = jnp.broadcast_to(bounds, (len(scale.temperatures),)) if len(taus) == 1 else bounds
    picked = jnp.broadcast_to(rates[best], (len(scale.temperatures),)) if len(taus) == 1 else rates[best]
    names = ("coldest", "cold", "middle", "warm")
    return {
        "bound": bounds[at],
        "rate": rates[best[at]],
        "temperature": taus[at],
        "bounds": every,
        "temperatures": jnp.asarray(scale.temperatures),
        **{f"bound_{name}": every[k] for k, name in enumerate(names)},
        **{f"rate_{name}": picked[k] for k, name in enumerate(names)},
    }


def uses_temperature(arm):
    """Whether the arm has one to tune."""
    return arm.estimator in ("gumbel-rao", "st-gumbel")


def initial(key, pixels, scale):
    """Encoder and decoder of one hidden layer each."""
    code = scale.variables * scale.options
    sizes = ((pixels, scale.width), (scale.width, code), (code, scale.width), (scale.width, pixels))
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, s) / jnp.sqrt(s[0]), jnp.zeros(s[1])) for k, s in zip(keys, sizes, strict=True)]


def encode(params, x, shape):
    """Logits [rows, variables, options]."""
    (w1, b1), (w2, b2), *_ = params
    return (jnp.tanh(x @ w1 + b1) @ w2 + b2).reshape(len(x), *shape)


def decode(params, z):
    """Logits of the pixels [..., pixels], of codes z [..., variables, options]."""
    *_, (w3, b3), (w4, b4) = params
    return jnp.tanh(z.reshape(*z.shape[:-2], -1) @ w3 + b3) @ w4 + b4


def log_likelihood(params, x, z):
    """ln p(x | z), row by row."""
    logits = decode(params, z)
    return jnp.sum(x * logits - jax.nn.softplus(logits), axis=-1)


def divergence(logits):
    """KL of each row's choices to uniform ones."""
    log_q = jax.nn.log_softmax(logits)
    return jnp.sum(jnp.exp(log_q) * (log_q + jnp.log(logits.shape[-1])), axis=(-2, -1))


def enumerated_bound(params, x, choices):
    """The evidence lower bound of each row, every joint choice visited."""
    logits = encode(params, x, choices.shape[1:])
    log_q = jnp.einsum("svo,rvo->rs", choices, jax.nn.log_softmax(logits))
    pixels = decode(params, choices)  # [states, pixels], the same for every row
    likelihood = x @ pixels.T - jnp.sum(jax.nn.softplus(pixels), axis=1)
    return jnp.sum(jnp.exp(log_q) * likelihood, axis=1) - divergence(logits)


def surrogate(key, arm, tau, params, x, choices):
    """What is differentiated for a step: its gradient is that of minus the bound, as the arm estimates it."""
    if arm.estimator == "exact":
        return -jnp.mean(enumerated_bound(params, x, choices))
    logits = encode(params, x, choices.shape[1:])
    if arm.estimator in ("rloo", "zero"):
        return -jnp.mean(_by_score(key, arm, params, x, logits) - divergence(logits))
    settings = {
        "gumbel-rao": lambda: gumbel_rao(key, logits, tau, arm.samples),
        "st-gumbel": lambda: st_gumbel_softmax(key, logits, tau),
        "straight-through": lambda: straight_through(key, logits),
        "zgr": lambda: zgr(key, logits),
    }
    return -jnp.mean(log_likelihood(params, x, settings[arm.estimator]()) - divergence(logits))


def _by_score(key, arm, params, x, logits):
    """ln p(x | z) at fixed draws: two and the leave-one-out product with ln q (`rloo`), or one and nothing for q."""
    number = 2 if arm.estimator == "rloo" else 1
    noise = jax.random.gumbel(key, (number, *logits.shape))
    z = jax.nn.one_hot(jnp.argmax(jax.lax.stop_gradient(logits) + noise, axis=-1), logits.shape[-1])
    values = jax.vmap(lambda z: log_likelihood(params, x, z))(z)  # [draws, rows]
    if number == 1:
        return values[0]
    gain = jax.lax.stop_gradient(values - jnp.mean(values, axis=0)) / (number - 1)
    return jnp.mean(values, axis=0) + jnp.sum(gain * jnp.sum(z * jax.nn.log_softmax(logits), axis=(-2, -1)), axis=0)
