"""Fifty real protein backbones that ship with the package, chains built from angles, decoys and how good they are.

The chains are entries of the Protein Data Bank, whose data are free of copyright (CC0 1.0). `protein_chains` says more.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from laureate._core import require

__all__ = [
    "AMINO_ACIDS",
    "Backbones",
    "Chain",
    "build_backbone",
    "gdt_ts",
    "hinge_decoys",
    "protein_chains",
    "secondary_structure",
    "superpose",
    "synthetic_chains",
]

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
TABLE = "protein_chains.npz"
# Of the table: a result depends on what it was computed from.
SHA256 = "a9104db366ceb7426d7630daef31d9f50f5829d7fdcfe329c31fb9f0b61f4933"
STATES = ("coil", "helix", "strand")


class Chain(NamedTuple):
    """One protein chain.

    name: of it, such as its entry and chain. coords: [length, 4, 3], N, CA, C and O in Å, nan where an atom is missing.
    residues: [length], places in ``AMINO_ACIDS``.
    """

    name: str
    coords: np.ndarray
    residues: np.ndarray


@lru_cache(maxsize=1)
def protein_chains() -> tuple[Chain, ...]:
    """Fifty chains of 79 to 173 residues, 6,860 in all: real backbones from the Protein Data Bank (CC0 1.0).

    They are the structures that MDAnalysisTests 2.11 carries for its own test of secondary structure (its names: entry
    and chain), of which N, CA, C, O and the amino acids were taken, in steps of 0.01 Å, each chain moved to its centre.
    By their number of residues they are the set TS50 of protein design, whose chains are unlike each other.

    >>> chains = protein_chains()
    >>> len(chains), sum(len(chain.residues) for chain in chains), chains[0].coords.shape[1:]
    (50, 6860, (4, 3))
    """
    content = resources.files("laureate.problems").joinpath(TABLE).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    require("protein_chains", TABLE, f"the file of sha256 {SHA256[:12]}", found[:12], lambda f: f == SHA256[:12])
    with resources.as_file(resources.files("laureate.problems").joinpath(TABLE)) as path, np.load(path) as table:
        names, ends = [str(name) for name in table["names"]], np.cumsum(table["lengths"])
        coords, residues = table["coords"].astype(np.float32) / 100, table["residues"].astype(np.int32)
    starts = [0, *ends[:-1]]
    parts = zip(names, starts, ends, strict=True)
    return tuple(Chain(name, coords[start:end], residues[start:end]) for name, start, end in parts)


def build_backbone(phi: np.ndarray, psi: np.ndarray, omega: np.ndarray | float = np.pi) -> np.ndarray:
    """[length, 4, 3] in Å: the backbone with these dihedral angles (radians) and ideal bonds, atom after atom.

    φ of the first and ψ, ω of the last residue say nothing but where its O is.

    phi, psi: φ and ψ of every residue. omega: ω, of the peptide bonds.

    >>> helix = build_backbone(np.full(9, -1.0), np.full(9, -0.8))
    >>> helix.shape, round(float(np.linalg.norm(helix[1, 1] - helix[0, 1])), 1)
    ((9, 4, 3), 3.8)
    """
    phi, psi = np.asarray(phi, float), np.asarray(psi, float)
    omega = np.broadcast_to(np.asarray(omega, float), phi.shape)
    require(
        "build_backbone", "psi", f"of phi's shape {phi.shape}", psi.shape, lambda s: s == phi.shape and phi.ndim == 1
    )
    atoms = [np.zeros(3), np.array([1.458, 0.0, 0.0])]
    atoms.append(atoms[1] + 1.525 * np.array([-np.cos(np.deg2rad(111)), np.sin(np.deg2rad(111)), 0.0]))
    for i in range(len(phi) - 1):
        atoms.append(_next_atom(atoms[-3:], 1.329, 116.2, psi[i]))  # N of the next residue
        atoms.append(_next_atom(atoms[-3:], 1.458, 121.7, omega[i]))  # CA
        atoms.append(_next_atom(atoms[-3:], 1.525, 111.0, phi[i + 1]))  # C
    main = np.asarray(atoms).reshape(-1, 3, 3)
    oxygen = [_next_atom(list(rows), 1.231, 120.5, angle + np.pi) for rows, angle in zip(main, psi, strict=True)]
    return np.concatenate([main, np.asarray(oxygen)[:, None]], axis=1)


def _next_atom(last: Sequence[np.ndarray], length: float, angle: float, dihedral: float) -> np.ndarray:
    """The atom ``length`` from the last one, with the angle (degrees) and dihedral (radians) to the last three."""
    first, second, third = last
    axis = (third - second) / np.linalg.norm(third - second)
    normal = np.cross(second - first, axis)
    normal /= np.linalg.norm(normal)
    bend = np.deg2rad(180 - angle)
    across = np.cos(dihedral) * np.cross(normal, axis) + np.sin(dihedral) * normal
    return third + length * (np.cos(bend) * axis + np.sin(bend) * across)


def synthetic_chains(num_chains: int, length: int, seed: int = 0) -> tuple[Chain, ...]:
    """Chains of helices, strands and loops in turn, with amino acids that lean on them; the same on every machine.

    num_chains: how many. length: residues of each. seed: of NumPy's generator.

    >>> len(synthetic_chains(3, 20)), synthetic_chains(3, 20)[0].coords.shape
    (3, (20, 4, 3))
    """
    rng = np.random.default_rng(seed)
    made = []
    for number in range(num_chains):
        states = np.concatenate([np.full(rng.integers(4, 9), rng.integers(3)) for _ in range(length)])[:length]
        centres = np.deg2rad([[-70.0, 60.0], [-57.0, -47.0], [-120.0, 120.0]])[states]
        angles = centres + rng.normal(size=(length, 2)) * np.array([0.5, 0.08, 0.15])[states][:, None]
        residues = (rng.integers(0, 7, length) + 7 * states + rng.integers(0, 3, length)) % 20
        made.append(Chain(f"made-{number}", build_backbone(*angles.T).astype(np.float32), residues.astype(np.int32)))
    return tuple(made)


def secondary_structure(coords: np.ndarray) -> np.ndarray:
    """[length]: 0 coil, 1 helix, 2 strand, from hydrogen bonds (Kabsch and Sander 1983), as three states.

    A bond from the O of i to the N of j where E = 27.9 (1/r_ON + 1/r_CH − 1/r_OH − 1/r_CN) < −0.5 kcal/mol. Two turns
    in a row, of 3, 4 or 5 residues, make a helix, bridges a strand; helices first. H is put 1.01 Å from N, against the
    C=O before.
    """
    coords = np.asarray(coords, float)
    require("secondary_structure", "coords", "[length, 4, 3]: N, CA, C, O", coords.shape, lambda s: s[1:] == (4, 3))
    n, _, c, o = np.moveaxis(coords, 1, 0)
    length = len(n)
    carbonyl = (c - o) / np.linalg.norm(c - o, axis=1, keepdims=True)
    h = n + 1.01 * np.concatenate([np.full((1, 3), np.nan), carbonyl[:-1]])  # the first N has no C=O before it
    distance = lambda a, b: np.linalg.norm(a[:, None] - b[None], axis=-1)  # noqa: E731
    with np.errstate(divide="ignore", invalid="ignore"):
        energy = 27.9 * (1 / distance(o, n) + 1 / distance(c, h) - 1 / distance(o, h) - 1 / distance(c, n))
        bond = np.nan_to_num(energy) < -0.5  # [from O of, to N of]
    bond &= np.abs(np.subtract.outer(np.arange(length), np.arange(length))) > 1
    helix = np.zeros(length, bool)
    for turn in (3, 4, 5):
        starts = np.zeros(length, bool)
        starts[: max(length - turn, 0)] = bond.diagonal(turn)
        for first in np.flatnonzero(starts[:-1] & starts[1:]) + 1:
            helix[first : first + turn] = True
    padded = np.pad(bond, 1)
    at = lambda down, across: padded[1 + down : 1 + down + length, 1 + across : 1 + across + length]  # noqa: E731
    turned = lambda down, across: padded.T[1 + down : 1 + down + length, 1 + across : 1 + across + length]  # noqa: E731
    # at(a, b)[i, j]: a bond from the O of i + a to the N of j + b; turned(a, b)[i, j]: from that of j + b to i + a.
    parallel = (at(-1, 0) & turned(1, 0)) | (turned(0, -1) & at(0, 1))
    antiparallel = (at(0, 0) & turned(0, 0)) | (at(-1, 1) & turned(1, -1))
    apart = np.abs(np.subtract.outer(np.arange(length), np.arange(length))) > 2
    strand = ((parallel | antiparallel) & apart).any(1)
    return np.where(helix, 1, np.where(strand, 2, 0)).astype(np.int32)


def superpose(moving: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """``moving`` [..., n, 3] turned and shifted onto ``fixed`` [n, 3] with the least squares (Kabsch 1976)."""
    here, there = moving.mean(-2, keepdims=True), fixed.mean(-2, keepdims=True)
    u, _, v = np.linalg.svd(np.swapaxes(moving - here, -1, -2) @ (fixed - there))
    sign = np.ones((*moving.shape[:-2], 3))
    sign[..., 2] = np.sign(np.linalg.det(u @ v))  # a rotation, never a reflection
    return (moving - here) @ ((u * sign[..., None, :]) @ v) + there


def gdt_ts(models: np.ndarray, native: np.ndarray) -> np.ndarray:
    """[...]: the mean share of CA atoms within 1, 2, 4 and 8 Å of the native ones after one superposition on all.

    The original measure looks for the superposition that puts the most atoms within each distance, so that this one is
    at most as large. models: [..., n, 3]. native: [n, 3].

    >>> native = np.random.default_rng(0).normal(size=(9, 3))
    >>> float(gdt_ts(native + 3.0, native))
    1.0
    """
    apart = np.linalg.norm(superpose(np.asarray(models, float), np.asarray(native, float)) - native, axis=-1)
    return np.mean([(apart <= cutoff).mean(-1) for cutoff in (1.0, 2.0, 4.0, 8.0)], axis=0)


def hinge_decoys(generator: np.random.Generator, coords: np.ndarray, number: int, spread: float = 0.06) -> np.ndarray:
    """[number, length, 4, 3]: the chain with noise on all φ and ψ and a few large turns, bonds and angles kept.

    Every decoy has a size of its own, uniform in [0, 1], which multiplies ``spread`` (radians, of each angle) and the
    three large turns (standard deviation 0.8 radians). All atoms behind an angle turn about its bond.
    """
    length = len(coords)
    size = generator.uniform(size=(number, 1, 1))
    angles = size * spread * generator.normal(size=(number, length, 2))
    for decoy, hinges in enumerate(generator.integers(1, length - 1, (number, 3))):
        angles[decoy, hinges, 0] += size[decoy, 0, 0] * 0.8 * generator.normal(size=3)
    angles[:, 0, 0] = 0.0  # φ of the first residue turns everything
    atoms = np.asarray(coords, float)
    n, ca, c, o = np.moveaxis(atoms, 1, 0)
    turns = np.empty((number, 2 * length, 4, 4))
    turns[:, 0::2] = _turns(ca - n, ca, angles[:, :, 0])
    turns[:, 1::2] = _turns(c - ca, ca, angles[:, :, 1])
    # What is behind several angles is turned by the last of them first, each about its axis as it was.
    behind = [np.broadcast_to(np.eye(4), (number, 4, 4))]
    for index in range(2 * length):
        behind.append(behind[-1] @ turns[:, index])
    after = np.stack(behind, axis=1)  # [number, angles before the atom, 4, 4]
    before, phi, psi = after[:, 0:-1:2], after[:, 1::2], after[:, 2::2]
    made = [_moved(before, n), _moved(before, ca), _moved(phi, c), _moved(psi, o)]
    return np.stack(made, axis=2).astype(np.float32)


def _turns(axis: np.ndarray, origin: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """[..., length, 4, 4]: turns by ``angle`` [..., length] about axes [length, 3] through ``origin`` (Rodrigues)."""
    unit = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
    cross = np.cross(np.eye(3), unit[:, None, :]).swapaxes(-1, -2)  # [length, 3, 3]: v ↦ unit × v
    sin, cos = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    made = np.zeros((*angle.shape, 4, 4))
    made[..., :3, :3] = np.eye(3) + sin * -cross + (1 - cos) * (cross @ cross)
    made[..., :3, 3] = origin - (made[..., :3, :3] @ origin[..., None])[..., 0]
    made[..., 3, 3] = 1.0
    return made


def _moved(transforms: np.ndarray, points: np.ndarray) -> np.ndarray:
    return (transforms[..., :3, :3] @ points[..., None])[..., 0] + transforms[..., :3, 3]


class Backbones:
    """Chains with what is asked of each residue, for `laureate run gvp --problem`: yours offers the same three fields.

    data: "protein-chains" (real ones, see `protein_chains`) or "made" (`synthetic_chains`).
    num_chains: at most so many. length: of each at most the first so many residues.

    chains: coordinates [length, 4, 3] each. labels: integers [length] each, here the secondary structure.
    residues: integers [length] each, places in ``AMINO_ACIDS``.
    """

    def __init__(self, data: str = "protein-chains", num_chains: int = 50, length: int = 200):
        require("Backbones", "data", "'protein-chains' or 'made'", data, lambda d: d in ("protein-chains", "made"))
        found = protein_chains() if data == "protein-chains" else synthetic_chains(num_chains, length)
        self.chains = [chain.coords[:length] for chain in found[:num_chains]]
        # Of the whole chain: what a residue is bonded to may be cut off.
        self.labels = [secondary_structure(chain.coords)[:length] for chain in found[:num_chains]]
        self.residues = [chain.residues[:length] for chain in found[:num_chains]]
