"""The sites and moves of a position tree, numbered through all its leaves.

A *site* is one variable, a *move* one change of one site. Both are numbered leaf after leaf, so that samplers deal
with flat indices and never with trees.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.experimental import checkify
from jaxtyping import Array, Bool, Float, Int

from laureate.sampling.domain import Binary, Categorical, Domain, Ordinal

__all__ = ["Layout"]

Tree = Any


class Layout:
    """Numbers the sites and moves of ``position``; made while tracing, from shapes alone."""

    def __init__(self, domain: Tree, position: Tree):
        def is_domain(node):
            return isinstance(node, Binary | Categorical | Ordinal)

        domains, structure = jax.tree.flatten(domain, is_leaf=is_domain)
        given, given_structure = jax.tree.flatten_with_path(position)
        if structure != given_structure:
            wanted = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(domain, is_leaf=is_domain)]
            have = [jax.tree_util.keystr(path) for path, _ in given]
            raise ValueError(f"position must have the leaves of domain, {wanted}; got {have}.")
        for leaf in domains:
            if not is_domain(leaf):
                raise ValueError(f"domain must have leaves Binary, Categorical or Ordinal; got {leaf!r}.")
        for (path, leaf), leaf_domain in zip(given, domains, strict=True):
            kind = jnp.result_type(leaf)
            if not (jnp.issubdtype(kind, jnp.integer) or kind == jnp.bool_):
                raise ValueError(
                    f"position{jax.tree_util.keystr(path)} must hold integer or boolean codes of {leaf_domain}; "
                    f"got {kind}. For one-hot rows, pass rows.argmax(-1)."
                )
        self.domains: list[Domain] = domains
        self.structure = structure
        self.paths = [jax.tree_util.keystr(path) for path, _ in given]
        self.shapes = [np.shape(leaf) for _, leaf in given]
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        # Offsets of each leaf's first site and first move, with the totals at the end.
        self.site_offsets = np.concatenate([[0], np.cumsum(sizes)])
        moves = [size * leaf.num_moves for size, leaf in zip(sizes, domains, strict=True)]
        self.move_offsets = np.concatenate([[0], np.cumsum(moves)])
        self.num_sites = int(self.site_offsets[-1])
        self.num_moves = int(self.move_offsets[-1])
        if min(sizes, default=0) == 0:
            raise ValueError(f"position must have at least one site a leaf; got {sizes} at {self.paths}.")

    # --- trees and floats -------------------------------------------------------------------------------------------

    def relax(self, position: Tree) -> Tree:
        """The floats that the log density is given."""
        leaves = jax.tree.leaves(position)
        return self.structure.unflatten([d.relax(jnp.asarray(x)) for d, x in zip(self.domains, leaves, strict=True)])

    def differences(self, position: Tree, gradient: Tree) -> Float[Array, "moves"]:
        """First-order estimates d̃ of f(x') - f(x) for every move; -inf where a move is not available."""
        leaves = zip(self.domains, jax.tree.leaves(position), jax.tree.leaves(gradient), strict=True)
        return _join([d.differences(x, g).reshape(-1) for d, x, g in leaves])

    def check(self, position: Tree, category_mask: Tree) -> None:
        """Raise unless every code lies in its domain; under a trace, `checkify.checkify` makes it an error value."""
        leaves = jax.tree.leaves(position)
        for path, domain, codes, inside in self._inside(leaves, category_mask):
            if isinstance(inside, Tracer):
                checkify.debug_check(jnp.all(inside), f"position{path} must hold values of {domain}.")
            else:
                _refuse_outside(f"position{path}", domain, codes, inside)

    def check_all(self, name: str, positions: Tree, category_mask: Tree) -> Bool[Array, ""]:
        """Whether all codes of stacked positions lie in their domains; raises where that can be seen."""

        sound = []
        for path, domain, codes, inside in self._inside(jax.tree.leaves(positions), category_mask, stacked=True):
            if not isinstance(inside, Tracer):
                _refuse_outside(f"{name}{path}", domain, codes, inside)
            sound.append(jnp.all(inside))
        return jnp.all(jnp.stack(sound))

    def _inside(
        self, leaves: list[Any], category_mask: Tree, stacked: bool = False
    ) -> Iterator[tuple[str, Any, Array, Bool[Array, "..."]]]:
        """Path, domain and codes of every leaf, and which codes are allowed; by NumPy, unless something is traced."""
        allowed = self._category_masks(category_mask)
        for path, domain, codes, mask in zip(self.paths, self.domains, leaves, allowed, strict=True):
            library: Any = jnp if isinstance(codes, Tracer) or isinstance(mask, Tracer) else np
            codes = library.asarray(codes)
            inside = domain.contains(codes)
            if mask is not None:
                index = library.clip(codes.astype(np.int32), 0, domain.num_values - 1)
                mask = library.asarray(mask)[None] if stacked else library.asarray(mask)
                inside = inside & library.take_along_axis(mask, index[..., None], -1)[..., 0]
            yield path, domain, codes, inside

    def check_masks(self, owner: str, site_mask: Tree, category_mask: Tree) -> None:
        """Raise where the masks do not fit the position or leave no move."""
        available = self.available(site_mask, category_mask)
        if available is not None and not isinstance(available, Tracer) and not bool(jnp.any(available)):
            raise ValueError(f"{owner}.site_mask must leave a site free; got none: no move possible.")

    # --- masks ------------------------------------------------------------------------------------------------------

    def free_sites(self, site_mask: Tree) -> Bool[Array, "sites"] | None:
        """Which sites may move, or None where all may."""
        if site_mask is None:
            return None
        masks = self._match(site_mask, "site_mask", self.shapes)
        return _join([jnp.asarray(mask, bool).reshape(-1) for mask in masks])

    def available(self, site_mask: Tree, category_mask: Tree) -> Bool[Array, "moves"] | None:
        """Which moves the masks allow, or None where all are."""
        free = self.free_sites(site_mask)
        allowed = self._category_masks(category_mask)
        if free is None and all(mask is None for mask in allowed):
            return None
        parts = []
        for i, (domain, mask) in enumerate(zip(self.domains, allowed, strict=True)):
            size = int(self.site_offsets[i + 1] - self.site_offsets[i])
            part = jnp.ones((size, domain.num_moves), bool)
            if free is not None:
                part &= free[self.site_offsets[i] : self.site_offsets[i + 1], None]
            if mask is not None:
                part &= mask.reshape(size, domain.num_moves)
            parts.append(part.reshape(-1))
        return _join(parts)

    def scattered(self, position: Tree, site_mask: Tree, category_mask: Tree) -> Tree:
        """The position with other, arbitrary values at all free sites, always the same ones; by NumPy."""
        draw = np.random.default_rng(0)
        masks = self._category_masks(category_mask)
        free = [None] * len(masks) if site_mask is None else self._match(site_mask, "site_mask", self.shapes)
        leaves = []
        for domain, leaf, mask, may in zip(self.domains, jax.tree.leaves(position), masks, free, strict=True):
            codes = np.asarray(leaf)
            chance = draw.random((*codes.shape, domain.num_values))
            chance = chance if mask is None else np.where(np.asarray(mask), chance, -1.0)
            other = np.asarray(domain.code(chance.argmax(axis=-1))).astype(codes.dtype)
            leaves.append(other if may is None else np.where(np.asarray(may), other, codes))
        return self.structure.unflatten(leaves)

    def values_allowed(self, category_mask: Tree) -> Bool[Array, "sites values"]:
        """Which value indices each site may take; the second axis is as long as the largest domain."""
        most = max(domain.num_values for domain in self.domains)
        parts = []
        for i, (domain, mask) in enumerate(zip(self.domains, self._category_masks(category_mask), strict=True)):
            size = int(self.site_offsets[i + 1] - self.site_offsets[i])
            part = jnp.broadcast_to(jnp.arange(most) < domain.num_values, (size, most))
            if mask is not None:
                part = part.at[:, : domain.num_values].set(mask.reshape(size, domain.num_values))
            parts.append(part)
        return _join(parts)

    def _category_masks(self, category_mask: Tree) -> list[Array | None]:
        if category_mask is None:
            return [None] * len(self.domains)
        shapes = [
            (*shape, domain.num_values) if isinstance(domain, Categorical) else None
            for domain, shape in zip(self.domains, self.shapes, strict=True)
        ]
        masks = self._match(category_mask, "category_mask", shapes)
        return [None if mask is None else jnp.asarray(mask, bool) for mask in masks]

    def _match(self, tree: Tree, name: str, shapes: Sequence[tuple | None]) -> list[Any]:
        leaves, structure = jax.tree.flatten(tree, is_leaf=lambda node: node is None)
        if structure.num_leaves != len(shapes):
            raise ValueError(f"{name} must have the leaves of domain, {self.paths}; got {structure}.")
        for path, leaf, shape in zip(self.paths, leaves, shapes, strict=True):
            if leaf is not None and np.shape(leaf) != shape:
                raise ValueError(f"{name}{path} must have shape {shape}; got {np.shape(leaf)}.")
            if leaf is None and name == "site_mask":
                raise ValueError(f"{name}{path} must be an array of shape {shape}; got None.")
        return leaves

    # --- single sites and moves -------------------------------------------------------------------------------------

    def read(self, position: Tree, sites: Int[Array, "n"]) -> Int[Array, "n"]:
        """The codes at ``sites``; a site beyond the last reads as some code and is for the caller to ignore."""
        values = []
        for i, leaf in enumerate(jax.tree.leaves(position)):
            local = jnp.clip(sites - self.site_offsets[i], 0, leaf.size - 1)
            values.append(leaf.reshape(-1)[local].astype(jnp.int32))
        return _choose(self._leaf_of(sites, self.site_offsets), values)

    def write(self, position: Tree, sites: Int[Array, "n"], codes: Int[Array, "n"]) -> Tree:
        """The position with ``codes`` at ``sites``; a repeated site must carry equal codes; sites beyond drop."""
        leaves = []
        for i, leaf in enumerate(jax.tree.leaves(position)):
            local = sites - self.site_offsets[i]
            local = jnp.where(local < 0, leaf.size, local)
            new = leaf.reshape(-1).at[local].set(codes.astype(leaf.dtype), mode="drop")
            leaves.append(new.reshape(leaf.shape))
        return self.structure.unflatten(leaves)

    def locate(self, position: Tree, moves: Int[Array, "n"]) -> tuple[Int[Array, "n"], Int[Array, "n"]]:
        """The site of each move and the code it leads to; a move beyond the last has the site ``num_sites``."""
        leaf = self._leaf_of(moves, self.move_offsets)
        widths = jnp.asarray([domain.num_moves for domain in self.domains], jnp.int32)[leaf]
        local = moves - jnp.asarray(self.move_offsets[:-1], jnp.int32)[leaf]
        sites = jnp.asarray(self.site_offsets[:-1], jnp.int32)[leaf] + local // widths
        sites = jnp.where(moves < self.num_moves, sites, self.num_sites)
        codes = self.read(position, sites)
        return sites, _choose(leaf, [domain.target(codes, local % widths) for domain in self.domains])

    def moves_between(
        self, sites: Int[Array, "n"], start: Int[Array, "n"], end: Int[Array, "n"]
    ) -> tuple[Int[Array, "n"], Bool[Array, "n"]]:
        """The moves that take each site from one code to another, and whether there is one."""
        found = []
        for i, domain in enumerate(self.domains):
            move, exists = domain.move(start, end)
            first = self.move_offsets[i] + (sites - self.site_offsets[i]) * domain.num_moves
            found.append((first + move, exists))
        leaf = self._leaf_of(sites, self.site_offsets)
        return _choose(leaf, [move for move, _ in found]), _choose(leaf, [exists for _, exists in found])

    def code(self, sites: Int[Array, "n"], index: Int[Array, "n"]) -> Int[Array, "n"]:
        """The code of a value's index at each site."""
        return _choose(self._leaf_of(sites, self.site_offsets), [domain.code(index) for domain in self.domains])

    def index(self, sites: Int[Array, "n"], code: Int[Array, "n"]) -> Int[Array, "n"]:
        """The index of a code at each site."""
        return _choose(self._leaf_of(sites, self.site_offsets), [domain.index(code) for domain in self.domains])

    def num_values(self, sites: Int[Array, "n"]) -> Int[Array, "n"]:
        """How many values each site has."""
        counts = jnp.asarray([domain.num_values for domain in self.domains], jnp.int32)
        return counts[self._leaf_of(sites, self.site_offsets)]

    def _leaf_of(self, numbers: Int[Array, "n"], offsets: np.ndarray) -> Int[Array, "n"]:
        leaf = jnp.zeros_like(numbers)
        for start in offsets[1:-1]:
            leaf = leaf + (numbers >= start)
        return leaf


def _refuse_outside(where: str, domain: Any, codes: Any, inside: Any) -> None:
    if not bool(np.all(inside)):
        got = np.unique(np.asarray(codes)[~np.asarray(inside)])[:5].tolist()
        remedy = " Spins of ±1 become such codes by (s + 1) // 2." if got == [-1] else ""
        raise ValueError(f"{where} must hold values of {domain} (and of category_mask); got {got}.{remedy}")


def split_at(values: Array, offsets: np.ndarray) -> list[Array]:
    """The stretches of a flat array between successive offsets."""
    return [values[start:stop] for start, stop in itertools.pairwise(offsets)]


def _join(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def _choose(leaf: Int[Array, "n"], options: list[Array]) -> Array:
    chosen = options[0]
    for i, option in enumerate(options[1:], 1):
        chosen = jnp.where(leaf == i, option, chosen)
    return chosen
