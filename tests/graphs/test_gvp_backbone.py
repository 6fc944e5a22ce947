"""Backbones as graphs: angles, directions, codes, poses, interruptions, files."""

import gzip
import sys

import numpy as np
import pytest

from laureate.graphs import featurize_backbone, read_backbone
from laureate.graphs.backbone import _positional, _radial
from laureate.problems.proteins import (
    Backbones,
    build_backbone,
    gdt_ts,
    hinge_decoys,
    protein_chains,
    secondary_structure,
    superpose,
    synthetic_chains,
)

gemmi = pytest.importorskip("gemmi")
CHAIN = protein_chains()[0]
REAL = CHAIN.coords[:40]
TURN = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
TURN = (TURN * np.linalg.det(TURN)).astype(np.float32)


def features(coords, **more):
    graph, report = featurize_backbone(coords, **{"num_neighbours": 6} | more)
    return [np.asarray(leaf) for leaf in (*graph.nodes, *graph.edges)], graph, report


@pytest.mark.parametrize(("phi", "psi"), [(-57.0, -47.0), (-120.0, 120.0)])
def test_angles_of_ideal_chains(phi, psi):
    made = build_backbone(np.full(8, np.deg2rad(phi)), np.full(8, np.deg2rad(psi)))
    (scalars, *_), _, _ = features(made)
    found = np.rad2deg(np.arctan2(scalars[:, 3:], scalars[:, :3]))
    apart = (found[1:-1] - [phi, psi, 180.0] + 180) % 360 - 180  # 180° is −180°
    np.testing.assert_allclose(apart, 0.0, atol=1e-3)
    # φ of the first, ψ and ω of the last residue are angles 0.
    np.testing.assert_allclose(scalars[0, [0, 3]], [1, 0])
    np.testing.assert_allclose(scalars[-1, [1, 2, 4, 5]], [1, 1, 0, 0])


def test_a_pose_turns_vectors_and_a_mirror_flips_sines():
    before, graph, _ = features(REAL)
    after, moved, _ = features(REAL @ TURN.T + np.float32([9, -4, 2]))
    assert (np.asarray(graph.senders) == np.asarray(moved.senders)).all()
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        np.testing.assert_allclose(new, old @ TURN.T if place % 2 else old, atol=2e-4)
    mirrored, _, _ = features(REAL * np.float32([1, 1, -1]))
    np.testing.assert_allclose(mirrored[0][:, :3], before[0][:, :3], atol=1e-5)
    np.testing.assert_allclose(mirrored[0][:, 3:], -before[0][:, 3:], atol=1e-5)
    np.testing.assert_allclose(mirrored[2], before[2], atol=1e-5)
    # The side chain's direction is no mirror image: a protein is not one either.
    assert np.abs(mirrored[1][:, 2] - before[1][:, 2] * [1, 1, -1]).max() > 0.5


def test_edges_come_from_the_nearest_and_point_to_them():
    (_, vectors, scalars, directions), graph, report = features(REAL)
    senders, receivers = np.asarray(graph.senders), np.asarray(graph.receivers)
    alpha = REAL[:, 1]
    apart = np.linalg.norm(alpha[:, None] - alpha[None], axis=-1) + 1e9 * np.eye(40)
    assert [set(senders[receivers == i]) for i in range(40)] == [set(np.argsort(row)[:6]) for row in apart]
    between = alpha[senders] - alpha[receivers]
    np.testing.assert_allclose(directions[:, 0], between / np.linalg.norm(between, axis=1, keepdims=True), atol=1e-5)
    ahead = np.diff(alpha, axis=0) / np.linalg.norm(np.diff(alpha, axis=0), axis=1, keepdims=True)
    np.testing.assert_allclose(vectors[:-1, 0], ahead, atol=1e-5)
    np.testing.assert_allclose(vectors[1:, 1], -ahead, atol=1e-5)
    assert not vectors[-1, 0].any()
    assert not vectors[0, 1].any()
    assert report._replace(residues=None) == (None, 0, 0, 6)
    # The first frequency is 1: the cosine and the sine of the places' difference.
    np.testing.assert_allclose(scalars[:, 16], np.cos(senders - receivers), atol=1e-5)
    np.testing.assert_allclose(scalars[:, 24], np.sin(senders - receivers), atol=1e-5)


def test_codes_of_distances():
    centres = np.linspace(0, 20, 16, dtype=np.float32)
    found = _radial(np, centres)
    np.testing.assert_allclose(np.diag(found), 1.0)
    np.testing.assert_allclose(found[0, 1], np.exp(-((20 / 15 / 1.25) ** 2)), rtol=1e-5)
    code = _positional(np, np.array([0, 3, 3]), np.array([True, True, False]), np.float32)
    np.testing.assert_allclose(code[0], [1] * 8 + [0] * 8)
    np.testing.assert_allclose(code[1, [1, 9]], [np.cos(3 * 10 ** (-0.5)), np.sin(3 * 10 ** (-0.5))], rtol=1e-5)
    assert not code[2].any()


def test_the_side_chain_points_where_it_is():
    """Beside Cβ as another rule of thumb puts it, a sum of bonds with fitted weights: two chains of real backbones."""
    for chain in protein_chains()[:2]:
        n, ca, c = (chain.coords[:, atom] for atom in range(3))
        b, d = ca - n, c - ca
        beta = -0.58273431 * np.cross(b, d) + 0.56802827 * b - 0.54067466 * d
        (_, vectors, *_), _, _ = features(chain.coords)
        np.testing.assert_allclose(np.linalg.norm(vectors[:, 2], axis=1), 1.0, rtol=1e-4)
        cosine = (vectors[:, 2] * beta).sum(1) / np.linalg.norm(beta, axis=1)
        assert np.median(cosine) > np.cos(np.deg2rad(6))  # with the weights swapped it is 15°


def test_interruptions_are_ends():
    whole = features(REAL)[0]
    broken = REAL.copy()
    broken[20:] += np.float32([30, 0, 0])
    (scalars, vectors, *_), _, report = features(broken)
    assert report.num_breaks == 1
    np.testing.assert_allclose(scalars[19, [1, 2]], 1)  # ψ, ω before it
    np.testing.assert_allclose(scalars[20, [0, 3]], [1, 0])  # φ behind it
    assert not vectors[19, 0].any()
    assert not vectors[20, 1].any()
    np.testing.assert_allclose(vectors[19, 1], whole[1][19, 1], atol=1e-5)
    # Two chains: no interruption is counted, none is bridged, and the code along the chain is 0 between them.
    (scalars, vectors, codes, _), graph, report = features(REAL, chains=["A"] * 20 + ["B"] * 20)
    assert report.num_breaks == 0
    assert not vectors[19, 0].any()
    across = (np.asarray(graph.senders) < 20) != (np.asarray(graph.receivers) < 20)
    assert across.any()
    assert not codes[across, 16:].any()
    assert codes[~across, 16:].any(1).all()


def test_missing_atoms_leave_a_residue_out():
    holed = REAL.copy()
    holed[7, 1, 2], holed[30, 0] = np.nan, np.inf
    holed[12, 3] = np.nan  # O is not used
    (scalars, vectors, codes, _), graph, report = features(holed)
    assert report.num_missing == 2
    assert report.num_breaks == 2
    assert 7 not in report.residues
    assert len(report.residues) == graph.num_nodes == 38
    assert all(np.isfinite(leaf).all() for leaf in (scalars, vectors, codes))
    assert not vectors[6, 0].any()  # residue 6 has no next one
    senders, receivers = (report.residues[np.asarray(end)] for end in (graph.senders, graph.receivers))
    np.testing.assert_allclose(codes[:, 16], np.cos(senders - receivers), atol=1e-5)  # places along the whole chain


def test_residues_in_one_place_have_no_direction_between_them():
    """A copy of a chain on top of itself: distance and direction 0, nothing that is not finite, all nodes kept."""
    twice = np.concatenate([REAL, REAL])
    (scalars, vectors, codes, directions), graph, report = features(twice, chains=["A"] * 40 + ["B"] * 40)
    assert graph.num_nodes == len(report.residues) == 80
    assert all(np.isfinite(leaf).all() for leaf in (scalars, vectors, codes, directions))
    twins = np.abs(np.asarray(graph.senders) - np.asarray(graph.receivers)) == 40
    assert twins.sum() == 80  # each is the other's nearest
    assert not directions[twins].any()
    np.testing.assert_allclose(np.linalg.norm(directions[~twins], axis=-1), 1, atol=1e-4)


def test_short_chains_have_fewer_neighbours_and_nanometres_are_told():
    assert features(REAL[:4], num_neighbours=30)[2].num_neighbours == 3
    with pytest.warns(UserWarning, match="look like nanometres"):
        features(REAL / 10)


# --- the chains that ship, decoys -------------------------------------------------------------------------------------


def test_the_table_of_real_chains():
    chains = protein_chains()
    assert len(chains) == 50
    bonds = np.concatenate([np.linalg.norm(chain.coords[:, 1] - chain.coords[:, 0], axis=1) for chain in chains])
    assert 1.4 < np.median(bonds) < 1.5  # N to CA
    states = np.concatenate([secondary_structure(chain.coords) for chain in chains])
    assert 0.2 < (states == 1).mean() < 0.5
    assert 0.1 < (states == 2).mean() < 0.4
    helix = build_backbone(np.full(14, np.deg2rad(-57)), np.full(14, np.deg2rad(-47)))
    assert (secondary_structure(helix)[2:-2] == 1).all()
    strand = build_backbone(np.full(14, np.deg2rad(-120)), np.full(14, np.deg2rad(120)))
    assert not secondary_structure(strand).any()  # alone it has no bridge
    assert len(Backbones("made", 3, 12).labels) == 3
    assert (synthetic_chains(2, 12)[1].coords == synthetic_chains(2, 12)[1].coords).all()


def test_residues_are_labelled_by_the_whole_chain_however_short_it_is_cut():
    found, whole = Backbones(num_chains=4, length=30), protein_chains()[:4]
    for chain, coords, labels, residues in zip(whole, found.chains, found.labels, found.residues, strict=True):
        np.testing.assert_array_equal(coords, chain.coords[:30])
        np.testing.assert_array_equal(residues, chain.residues[:30])
        np.testing.assert_array_equal(labels, secondary_structure(chain.coords)[:30])
    assert any((secondary_structure(coords) != of).any() for coords, of in zip(found.chains, found.labels, strict=True))


def test_superposition_and_quality():
    native = REAL[:, 1].astype(float)
    moved = native @ TURN.T.astype(float) + 5.0
    np.testing.assert_allclose(superpose(moved, native), native, atol=1e-5)
    assert gdt_ts(moved, native) == 1.0
    assert gdt_ts(native * [1, 1, -1], native) < 0.9  # a mirror image is another molecule
    far = native.copy()
    far[:, 0] += np.where(np.arange(40) % 2, 3.0, -3.0)
    assert gdt_ts(far, native) == 0.5  # all within 4 and 8 Å, none within 2
    decoys = hinge_decoys(np.random.default_rng(0), REAL, 6)
    for one, two in ((0, 1), (1, 2), (2, 3)):
        lengths = np.linalg.norm(decoys[:, :, one] - decoys[:, :, two], axis=-1)
        np.testing.assert_allclose(
            lengths, np.tile(np.linalg.norm(REAL[:, one] - REAL[:, two], axis=-1), (6, 1)), atol=1e-4
        )
    peptide = np.linalg.norm(decoys[:, 1:, 0] - decoys[:, :-1, 2], axis=-1)
    np.testing.assert_allclose(peptide, np.tile(np.linalg.norm(REAL[1:, 0] - REAL[:-1, 2], axis=-1), (6, 1)), atol=1e-4)
    # φ and ψ are turned, ω is not.
    before, *after = (features(coords)[0][0] for coords in (REAL, *decoys))
    turned = np.stack([np.abs(one - before).max(0).reshape(2, 3).max(0) for one in after])
    assert (turned[:, :2] > 1e-3).all()
    assert turned[:, 2].max() < 1e-3
    quality = gdt_ts(decoys[:, :, 1], native)
    assert quality.min() < 0.9
    assert quality.max() <= 1.0


# --- files ------------------------------------------------------------------------------------------------------------

LETTERS = {one: gemmi.expand_one_letter(one, gemmi.ResidueKind.AA) for one in "ACDEFGHIKLMNPQRSTVWY"}


def pdb(coords, residues, skip=(), chain="A"):
    """Lines of a PDB file; ``skip`` holds (residue, atom) that are missing."""
    lines, serial = [], 1
    for number, (rows, kind) in enumerate(zip(coords, residues, strict=True), 1):
        for name, xyz in zip(("N", "CA", "C", "O"), rows, strict=True):
            if (number, name) in skip:
                continue
            place = "".join(f"{value:8.3f}" for value in xyz)
            lines.append(
                f"ATOM  {serial:5d}  {name:<3} {kind} {chain}{number:4d}    {place}  1.00 10.00           {name[0]}"
            )
            serial += 1
    return lines


@pytest.fixture
def lines():
    kinds = [LETTERS["ACDEFGHIKLMNPQRSTVWY"[kind]] for kind in CHAIN.residues[:12]]
    return pdb(REAL[:12], kinds)


def test_a_real_chain_through_files(tmp_path, lines):
    path = tmp_path / "chain.pdb"
    path.write_text("\n".join([*lines, "END", ""]))
    read = read_backbone(path)
    np.testing.assert_allclose(read.coords, REAL[:12], atol=1e-3)
    assert (read.residues == CHAIN.residues[:12]).all()
    assert set(read.chains) == {"A"}
    (tmp_path / "chain.pdb.gz").write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_allclose(read_backbone(tmp_path / "chain.pdb.gz").coords, read.coords)
    structure = gemmi.read_structure(str(path))
    structure.setup_entities()
    structure.make_mmcif_document().write_file(str(tmp_path / "chain.cif"))
    again = read_backbone(tmp_path / "chain.cif", chain="A")
    np.testing.assert_allclose(again.coords, read.coords, atol=1e-3)
    assert again.sequence == read.sequence
    graph, report = featurize_backbone(read.coords, read.chains, num_neighbours=4)
    assert graph.num_nodes == 12
    assert report.num_breaks == 0


def test_alternatives_insertions_missing_atoms_and_modified_residues(tmp_path, lines):
    path = tmp_path / "odd.pdb"
    high = lines[5][:16] + "B" + lines[5][17:30] + "   1.000   2.000   3.000  0.60" + lines[5][60:]
    low = lines[5][:16] + "A" + lines[5][17:54] + "  0.40" + lines[5][60:]
    odd = [*lines[:5], low, high, *lines[6:]]
    odd = [line.replace(line[17:20], "MSE") if line[22:26] == "   3" else line for line in odd]
    odd = [line for line in odd if not (line[22:26] == "   7" and line[12:16].strip() == "C")]
    inserted = [
        line[:26] + "A" + line[27:] if line[22:26] == "   9" else line for line in lines if line[22:26] == "   9"
    ]
    water = "HETATM  999  O   HOH A 500      10.000  10.000  10.000  1.00 10.00           O"
    last = max(place for place, line in enumerate(odd) if line[22:26] == "   9")
    path.write_text("\n".join([*odd[: last + 1], *inserted, *odd[last + 1 :], water, "END", ""]))
    with pytest.warns(UserWarning, match="1 backbone atoms of odd.pdb have alternative places"):
        read = read_backbone(path)
    assert len(read.sequence) == 13
    np.testing.assert_allclose(read.coords[1, 1], [1, 2, 3])
    assert read.sequence[2] == "M"
    assert np.isnan(read.coords[6, 2]).all()
    assert list(read.names[8:10]) == ["9", "9A"]
    assert read.num_alternatives == 1
    _, report = featurize_backbone(read.coords, num_neighbours=4)
    assert report.num_missing == 1


def test_one_chain_and_one_model_of_several(tmp_path, lines):
    path = tmp_path / "several.pdb"
    second = [line[:21] + "B" + line[22:] for line in lines[:20]]
    moved = [line[:30] + f"{float(line[30:38]) + 5:8.3f}" + line[38:] for line in lines]
    models = [["MODEL        1", *lines, *second, "ENDMDL"], ["MODEL        2", *moved, *second, "ENDMDL"]]
    path.write_text("\n".join([*models[0], *models[1], "END", ""]))
    assert len(read_backbone(path).sequence) == 17
    only = read_backbone(path, chain="B")
    assert set(only.chains) == {"B"}
    np.testing.assert_allclose(only.coords, REAL[:5], atol=1e-3)
    np.testing.assert_allclose(
        read_backbone(path, chain="A", model=1).coords, REAL[:12] + np.float32([5, 0, 0]), atol=1e-3
    )


def test_unknown_residues_and_files_that_are_none(tmp_path, lines, monkeypatch):
    path = tmp_path / "unknown.pdb"
    path.write_text("\n".join([line.replace(line[17:20], "UNK") if line[22:26] == "   2" else line for line in lines]))
    read = read_backbone(path)
    assert read.sequence[1] == "X"
    assert read.residues[1] == -1
    with pytest.raises(KeyError, match=r"residue UNK 2 of chain A has no letter"):
        read_backbone(path, unknown="error")
    with pytest.raises(ValueError, match=r"read_backbone.chain must be None or one of \['A'\]; got 'B'"):
        read_backbone(path, chain="B")
    with pytest.raises(ValueError, match=r"read_backbone.model must be in 0 to 0; got 3"):
        read_backbone(path, model=3)
    with pytest.raises(ValueError, match=r"read_backbone.unknown must be 'X' or 'error'"):
        read_backbone(path, unknown="drop")
    with pytest.raises(ValueError, match=r"read_backbone.path must be a file that is there"):
        read_backbone(tmp_path / "nowhere.pdb")
    (tmp_path / "text.pdb").write_text("not a structure\n")
    with pytest.raises(ValueError, match=r"read_backbone\.(path|model) must be"):
        read_backbone(tmp_path / "text.pdb")
    monkeypatch.setitem(sys.modules, "gemmi", None)
    with pytest.raises(ImportError, match=r"pip install 'laureate\[structures\]'"):
        read_backbone(path)
