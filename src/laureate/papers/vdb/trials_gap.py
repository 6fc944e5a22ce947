"""Two normal laws that hardly meet, and a discriminator that tells them apart: what is left for a generator?"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate import generative as g
from laureate.lab.claim import Settings

__all__ = ["gap"]


def gap(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Train a discriminator alone, with every budget of the scale at once; of the last fifth of the steps, means.

    Real examples are N(+4 e₁, I), made ones N(−4 e₁, I), in two dimensions.
    """
    net_key, fit_key, test_key = jax.random.split(key, 3)
    budgets, width, shift = jnp.asarray(scale.budgets), scale.width, jnp.array([4.0, 0.0])
    coded = arm.kind != "plain"
    layers = (scale.codes, 1) if coded else (2, width, width, 1)
    head_key, encoder_key = jax.random.split(net_key)
    (head,) = g.perceptrons(head_key, layers, activation=jax.nn.leaky_relu)
    encoder = g.make_encoder(encoder_key, (2, width, width), scale.codes)
    fresh = jax.random.normal(test_key, (2, scale.tests, 2)) + jnp.stack([shift, -shift])[:, None]

    def at(budget):
        bottleneck = g.VariationalBottleneck(encoder, budget, beta=arm.beta, beta_rate=arm.beta_rate)
        judge = g.Judge(head, "saturating", bottleneck if coded else (), scale.rate)

        def one(state, number):
            draw_key, step_key = jax.random.split(jax.random.fold_in(fit_key, number))
            real, made = jax.random.normal(draw_key, (2, scale.batch, 2)) + jnp.stack([shift, -shift])[:, None]
            state, info = judge.step(step_key, real, made, state)
            beta = state.regularisers[0].beta if coded else jnp.zeros(())
            return state, (info.nats, beta)

        state, (nats, betas) = jax.lax.scan(one, judge.init(), jnp.arange(scale.steps))
        on_real, on_made = judge.score(state, fresh[0]), judge.score(state, fresh[1])
        slopes = jax.vmap(jax.grad(lambda x: judge.score(state, x[None])[0]))(fresh[1])
        # log₁₀ ‖∇ log(1 − D)‖ = log₁₀ (D ‖∇l‖), without the underflow of D.
        length = jnp.log(jnp.linalg.norm(slopes, axis=1))
        log_slope = jnp.mean(jax.nn.log_sigmoid(on_made) + length) / jnp.log(10.0)
        told = {
            "nats": jnp.mean(nats[-(scale.steps // 5) :]),
            "beta": betas[-1],
            "log_slope": log_slope,
            "made_believed": jnp.mean(jax.nn.sigmoid(on_made)),
            "cross_entropy": 0.5 * jnp.mean(jax.nn.softplus(-on_real) + jax.nn.softplus(on_made)),
            "accuracy": 0.5 * (jnp.mean(on_real > 0, dtype=float) + jnp.mean(on_made < 0, dtype=float)),
        }
        if coded:
            # How far the codes of the two laws are apart, over the deviation of their noise.
            mean, log_deviation = bottleneck.code(judge_encoder(judge, state), fresh.reshape(-1, 2))
            signal, noise = jnp.var(mean, axis=0), jnp.mean(jnp.exp(2 * log_deviation), axis=0)
            told["log_ratio"] = jnp.log10(jnp.max(signal / noise))
        every = max(1, scale.steps // scale.points)
        return told, nats[every - 1 :: every][: scale.points]

    told, curves = jax.vmap(at)(budgets)
    usual = scale.usual  # which of the budgets is the usual one
    errors = jnp.abs(told["nats"] - budgets) / budgets
    metrics = {name: values[usual] for name, values in told.items()}
    every = max(1, scale.steps // scale.points)
    return metrics | {
        "error": jnp.max(errors),
        "error_usual": errors[usual],
        "believed_by_budget": told["made_believed"],
        "slope_by_budget": told["log_slope"],
        "nats_by_budget": told["nats"],
        "log_budgets": jnp.log10(budgets),
        "curve": curves[usual],
        "updates": jnp.arange(1.0, scale.points + 1) * every,
    }


def judge_encoder(judge: g.Judge, state: g.JudgeState) -> Any:
    """The encoder as it was learned."""
    return eqx.combine(state.parameters, judge.networks)[1][0]
