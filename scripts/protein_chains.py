"""Make ``src/laureate/problems/protein_chains.npz`` from the structures that MDAnalysisTests carries.

    python scripts/protein_chains.py FOLDER   # MDAnalysisTests/data/dssp of its source distribution (version 2.11.0)

Needs gemmi. The file that it writes differs by nothing but what numpy's compression makes of it.
"""

import hashlib
import sys
from pathlib import Path

import gemmi
import numpy as np

from laureate.problems.proteins import AMINO_ACIDS

TARGET = Path(__file__).resolve().parents[1] / "src" / "laureate" / "problems" / "protein_chains.npz"


def main(folder: Path) -> None:
    """Read all chains, write the table, tell its hash."""
    names, lengths, coords, residues = [], [], [], []
    for path in sorted(folder.glob("*.pdb.gz")):
        if not path.with_suffix(".dssp").exists():  # one that its own test expects to fail
            continue
        (chain,) = gemmi.read_structure(str(path))[0]
        rows = [[residue.find_atom(atom, "*").pos.tolist() for atom in ("N", "CA", "C", "O")] for residue in chain]
        found = np.asarray(rows)
        letters = [gemmi.find_tabulated_residue(residue.name).one_letter_code.upper() for residue in chain]
        names.append(path.name.removesuffix(".pdb.gz"))
        lengths.append(len(found))
        coords.append(np.rint(100 * (found - found[:, 1].mean(0))).astype(np.int16))
        residues.append([AMINO_ACIDS.index(letter) for letter in letters])
    np.savez_compressed(
        TARGET,
        names=np.array(names),
        lengths=np.array(lengths, np.int32),
        coords=np.concatenate(coords),
        residues=np.concatenate(residues).astype(np.int8),
    )
    print(len(names), sum(lengths), TARGET.stat().st_size, hashlib.sha256(TARGET.read_bytes()).hexdigest())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
