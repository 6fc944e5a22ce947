"""Backbones from files: PDB and mmCIF, also compressed, read by gemmi."""

import os
import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from laureate._core import require

__all__ = ["AMINO_ACIDS", "BackboneResult", "read_backbone"]

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
ATOMS = ("N", "CA", "C", "O")


class BackboneResult(NamedTuple):
    """Chains of a file, one after the other.

    coords: [length, 4, 3], N, CA, C, O in Å, nan where an atom is missing. sequence: a letter a residue.
    residues: [length], places in ``AMINO_ACIDS``; −1 for X. chains: [length], names.
    names: [length], number and insertion code as in the file. num_alternatives: atoms that had more than one place.
    """

    coords: np.ndarray
    sequence: str
    residues: np.ndarray
    chains: np.ndarray
    names: np.ndarray
    num_alternatives: int


def read_backbone(
    path: str | os.PathLike, chain: str | None = None, model: int = 0, unknown: str = "X"
) -> BackboneResult:
    """N, CA, C and O of all amino acids of a PDB or mmCIF file (``.gz`` too), for `featurize_backbone`.

    Water, ligands and nucleic acids are left out; modified amino acids (MSE …) are read as what they were made of. Of
    alternative places of an atom the one of highest occupancy is taken, of equals the first letter, with a warning.
    Residues with insertion codes are residues like others, in the order of the file.

    path: of the file. chain: one chain by its name; all without. model: which, counted from 0.
    unknown: "X" to keep amino acids without a letter as X, "error" to refuse them.
    """
    gemmi = _gemmi()
    require("read_backbone", "unknown", "'X' or 'error'", unknown, lambda u: u in ("X", "error"))
    path = os.fspath(path)
    require("read_backbone", "path", "a file that is there", path, os.path.isfile)
    try:
        structure = gemmi.read_structure(path)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"read_backbone.path must be a PDB or mmCIF file; got {path!r}: {error}") from None
    count = len(structure)
    require("read_backbone", "model", f"in 0 to {count - 1}", model, lambda m: isinstance(m, int) and 0 <= m < count)
    structure.setup_entities()
    there = [one.name for one in structure[model]]
    require("read_backbone", "chain", f"None or one of {there}", chain, lambda name: name is None or name in there)
    rows, letters, chains, names, alternatives = [], [], [], [], 0
    for one in structure[model]:
        for residue in one if chain in (None, one.name) else ():
            letter = _letter(gemmi, residue, unknown, one.name)
            if letter is None:
                continue
            found = [_best([atom for atom in residue if atom.name == name]) for name in ATOMS]
            alternatives += sum(number > 1 for _, number in found)
            rows.append([place for place, _ in found])
            letters.append(letter)
            chains.append(one.name)
            names.append(str(residue.seqid))
    remedy = f"{os.path.basename(path)} has none" + (f" in chain {chain}." if chain else ".")
    require("read_backbone", "path", "a file with amino acids", path, lambda _: bool(rows), remedy)
    if alternatives:
        warnings.warn(
            f"{alternatives} backbone atoms of {os.path.basename(path)} have alternative places: of each the one of "
            "highest occupancy was taken.",
            stacklevel=2,
        )
    twice = [name for name, number in Counter(zip(chains, names, strict=True)).items() if number > 1]
    if twice:
        warnings.warn(
            f"{len(twice)} residues of {os.path.basename(path)} are there twice, the first {twice[0]}.", stacklevel=2
        )
    return BackboneResult(
        np.asarray(rows, np.float32),
        "".join(letters),
        np.asarray([AMINO_ACIDS.find(letter) for letter in letters], np.int32),
        np.asarray(chains),
        np.asarray(names),
        alternatives,
    )


def _gemmi() -> Any:
    try:
        import gemmi
    except ImportError:
        raise ImportError(
            "Reading structures needs gemmi, which is not there. Install it with: pip install 'laureate[structures]'"
            " (or pip install gemmi). Arrays of coordinates go to featurize_backbone without it."
        ) from None
    return gemmi


def _letter(gemmi: Any, residue: Any, unknown: str, chain: str) -> str | None:
    """A letter of AMINO_ACIDS or X; None for what is no amino acid."""
    known = gemmi.find_tabulated_residue(residue.name)
    if known.found() and not known.is_amino_acid():
        return None
    if not known.found() and not any(atom.name == "CA" and atom.element.name == "C" for atom in residue):
        return None
    letter = known.one_letter_code.upper() if known.found() else "X"
    if letter in AMINO_ACIDS and letter.strip():
        return letter
    if unknown == "error":
        raise KeyError(
            f"residue {residue.name} {residue.seqid} of chain {chain} has no letter among {AMINO_ACIDS}; "
            "unknown='X' keeps it."
        )
    return "X"


def _best(atoms: list[Any]) -> tuple[list[float], int]:
    """The place of an atom, and how many there were."""
    if not atoms:
        return [float("nan")] * 3, 0
    best = min(atoms, key=lambda atom: (-atom.occ, atom.altloc))
    return best.pos.tolist(), len(atoms)
