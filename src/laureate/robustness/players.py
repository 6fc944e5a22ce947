"""Who plays: the units of a perturbation, and what it gains with some of them left out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.robustness.objectives import Logits, rivals

__all__ = ["PerturbationGame", "Players", "grid_players", "perturbation_game", "players_from"]


class Players(eqx.Module):
    """Which unit of a perturbation each value of an image belongs to; made by `grid_players` or `players_from`.

    labels: the number of its player for every value, in the shape of an image or of its first axes (the channels of a
        pixel then go together).
    count: how many players there are.
    """

    labels: Int[Array, "..."]
    count: int = eqx.field(static=True)

    def spread(self, masks: Float[Array, "m n"], ndim: int) -> Float[Array, "m 1 ..."]:
        """Masks of players as masks of values that multiply a batch of images with ``ndim`` axes."""
        values = masks[:, self.labels]
        return values.reshape(len(masks), 1, *self.labels.shape, *(1,) * (ndim - 1 - self.labels.ndim))


def players_from(labels: Any) -> Players:
    """Players of one's own: superpixels, tokens, features of a table.

    labels: integers 0 .. n - 1, each of them somewhere, in the shape of an image or of its first axes.

    >>> players_from([[0, 0, 1], [2, 2, 1]]).count
    3
    """
    found = np.asarray(labels)
    require("players_from", "labels", "integers", str(found.dtype), lambda _: np.issubdtype(found.dtype, np.integer))
    present = np.unique(found)
    everyone = len(present) >= 2 and np.array_equal(present, np.arange(len(present)))
    rule, remedy = "0 .. n - 1 with n >= 2, each at least once", "Every value needs a player, and every player a value."
    require("players_from", "labels", rule, present.tolist(), lambda _: everyone, remedy)
    return Players(jnp.asarray(found, jnp.int32), len(present))


def grid_players(size: tuple[int, int], grid: int) -> Players:
    """The squares of a grid as players, row by row.

    size: height and width of an image; the grid must divide both, for the border would belong to nobody.
    grid: squares along each axis, >= 2.

    >>> grid_players((4, 4), 2).labels.tolist()
    [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]
    """
    height, width = size
    require("grid_players", "grid", "an integer >= 2", grid, lambda g: isinstance(g, int) and g >= 2)
    remedy = "Choose a grid that divides the image, or make labels of your own for players_from."
    fits = lambda g: height % g == 0 and width % g == 0  # noqa: E731
    require("grid_players", "grid", f"a divisor of {height} and {width}", grid, fits, remedy)
    rows, columns = np.arange(height) * grid // height, np.arange(width) * grid // width
    return players_from(rows[:, None] * grid + columns)


class PerturbationGame(eqx.Module):
    """v(S) = h(x + δ_S): the margin with the perturbation kept on S alone, for each image; see `perturbation_game`.

    logits, images, delta, labels, players: as for `perturbation_game`.
    rival: the class in whose favour the margin is taken, one an image.
    sign: -1 where labels are to be reached, else 1.
    """

    logits: Logits
    images: Float[Array, "b ..."]
    delta: Float[Array, "b ..."]
    labels: Int[Array, "b"]
    players: Players
    rival: Int[Array, "b"]
    sign: int = eqx.field(static=True)

    def __call__(self, masks: Float[Array, "m n"]) -> Float[Array, "m b"]:
        """The rewards for these sets of players, rows of 0 and 1, in one call of the network."""
        spread = self.players.spread(masks.astype(self.delta.dtype), self.delta.ndim)
        # Set by set: the gradient by δ is then a running sum, on a CPU forty times as fast as one over the first axis.
        seen = jax.lax.map(lambda kept: self.images + kept * self.delta, spread)
        z = self.logits(seen.reshape(-1, *self.images.shape[1:]))
        z = z.reshape(*seen.shape[:2], z.shape[-1])
        z_rival, z_label = (
            jnp.take_along_axis(z, classes[None, :, None], axis=-1)[..., 0] for classes in (self.rival, self.labels)
        )
        return self.sign * (z_rival - z_label)


def perturbation_game(
    logits: Logits,
    images: Float[Array, "b ..."],
    delta: Float[Array, "b ..."],
    labels: Int[Array, "b"],
    players: Players,
    targeted: bool = False,
) -> PerturbationGame:
    """The game whose players are the units of a perturbation.

        v(S) = z_{y'}(x + δ_S) - z_y(x + δ_S)

    with δ_S the perturbation on S and 0 elsewhere. The rival y' is the largest other class of the whole perturbed image
    and the same for all S, as in the authors' code. With ``targeted`` it is v(S) = z_y - z_{y'}.

    logits: a function from images to logits z. images, delta, labels: x, δ and y. players: the units (`Players`).

    >>> game = perturbation_game(
    ...     lambda x: jnp.stack([-x[:, 0] * x[:, 1], x[:, 0] * x[:, 1]], axis=1),
    ...     jnp.zeros((1, 2)), jnp.array([[1.0, 3.0]]), jnp.array([0]), players_from([0, 1]),
    ... )
    >>> game(jnp.array([[1.0, 1.0], [1.0, 0.0]]))[:, 0].tolist()
    [6.0, 0.0]
    """
    check_shapes("perturbation_game", images, players)
    rival = rivals(logits(images + delta), labels)
    return PerturbationGame(logits, images, delta, labels, players, rival, -1 if targeted else 1)


def check_shapes(owner: str, images: Array, players: Players) -> None:
    """The players must cover an image."""
    rule = "in the shape of an image or of its first axes"
    shape, ndim = images.shape[1:], players.labels.ndim
    remedy = f"An image has shape {list(shape)}, the players' labels {list(players.labels.shape)}."
    require(owner, "players", rule, players.labels.shape, lambda found: found == shape[:ndim], remedy)
