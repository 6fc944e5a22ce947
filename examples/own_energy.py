"""Your own energy: a pytree of binary, categorical and ordinal variables, two samplers, and how well they mix."""

import equinox as eqx
import jax
import jax.numpy as jnp

from laureate.sampling import Binary, Categorical, Gibbs, GibbsWithGradients, Ordinal, mixing, run


class Menu(eqx.Module):
    """Which dishes are on (binary), which kitchen cooks (one of 3), how many tables (1..20), on relaxed values."""

    taste: jax.Array  # [dishes, kitchens]

    def __call__(self, x):
        served = jnp.sum(x["dishes"])
        fit = jnp.sum(x["dishes"] @ self.taste * x["kitchen"])
        return fit - 0.1 * (x["tables"] - 2.0 * served) ** 2 - 0.2 * served**2


DOMAIN = {"dishes": Binary(), "kitchen": Categorical(3), "tables": Ordinal(1, 20, window=2)}


def main(num_steps: int = 4000, num_chains: int = 8) -> dict[str, float]:
    energy = Menu(1.5 * jax.random.normal(jax.random.key(0), (10, 3)))
    start = {
        "dishes": jnp.zeros((num_chains, 10), bool),
        "kitchen": jnp.zeros(num_chains, jnp.int32),
        "tables": jnp.full(num_chains, 10),
    }
    effective = {}
    for name, kernel in {"Gibbs": Gibbs(energy, DOMAIN), "GWG": GibbsWithGradients(energy, DOMAIN)}.items():
        result = run(jax.random.key(1), kernel, start, num_steps)
        trace = jnp.asarray(result.samples["tables"][:, num_steps // 10 :], float)
        report = mixing(trace)
        effective[name] = float(report.effective) / float(result.cost.sum())
        rate = result.acceptance_rate.mean()
        print(
            f"{name:5s}  {rate:.2f} accepted, R-hat {float(report.r_hat):.3f}, "
            f"{1000 * effective[name]:.1f} effective tables per 1,000 evaluations"
        )
    return effective


if __name__ == "__main__":
    main()
