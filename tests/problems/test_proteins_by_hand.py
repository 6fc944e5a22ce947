"""Backbones, secondary structure and quality by loops over atoms, on chains whose angles are all different."""

import numpy as np
import pytest

from laureate.problems import proteins


def dihedral(a, b, c, d):
    """The angle about the bond from b to c, in radians (IUPAC's sign)."""
    first, second = np.cross(b - a, c - b), np.cross(c - b, d - c)
    return np.arctan2(np.linalg.norm(c - b) * (b - a) @ second, first @ second)


def angle(a, b, c):
    return np.rad2deg(np.arccos((a - b) @ (c - b) / np.linalg.norm(a - b) / np.linalg.norm(c - b)))


def test_a_backbone_has_the_angles_that_it_was_built_from():
    """φ, ψ and ω of every residue read back from the atoms; bonds and angles are ideal; O is in the peptide's plane."""
    rng = np.random.default_rng(0)
    phi, psi, omega = rng.uniform(-3, 3, (3, 6))
    made = proteins.build_backbone(phi, psi, omega)
    n, ca, c, o = np.moveaxis(made, 1, 0)
    turned = lambda found, wanted: np.abs((found - wanted + np.pi) % (2 * np.pi) - np.pi) < 1e-9  # noqa: E731
    for i in range(6):
        assert angle(n[i], ca[i], c[i]) == pytest.approx(111.0)
        assert np.linalg.norm(ca[i] - n[i]) == pytest.approx(1.458)
        assert np.linalg.norm(c[i] - ca[i]) == pytest.approx(1.525)
        assert np.linalg.norm(o[i] - c[i]) == pytest.approx(1.231)
        assert angle(ca[i], c[i], o[i]) == pytest.approx(120.5)
        assert turned(dihedral(n[i], ca[i], c[i], o[i]), psi[i] + np.pi)
        if i:
            assert turned(dihedral(c[i - 1], n[i], ca[i], c[i]), phi[i])
        if i < 5:
            assert turned(dihedral(n[i], ca[i], c[i], n[i + 1]), psi[i])
            assert turned(dihedral(ca[i], c[i], n[i + 1], ca[i + 1]), omega[i])
            assert np.linalg.norm(n[i + 1] - c[i]) == pytest.approx(1.329)
            assert (angle(ca[i], c[i], n[i + 1]), angle(c[i], n[i + 1], ca[i + 1])) == pytest.approx((116.2, 121.7))


def by_hand(coords):
    """Kabsch and Sander's rules, bond by bond; and which turns there were."""
    n, _, c, o = np.moveaxis(np.asarray(coords, float), 1, 0)
    length, bonds = len(n), set()
    near = np.argwhere(np.linalg.norm(o[:, None] - n[None], axis=-1) < 6)
    for i, j in near.tolist():
        if abs(i - j) > 1 and j:
            h = n[j] + 1.01 * (c[j - 1] - o[j - 1]) / np.linalg.norm(c[j - 1] - o[j - 1])
            far = lambda a, b: 1 / np.linalg.norm(a - b)  # noqa: E731
            if 27.9 * (far(o[i], n[j]) + far(c[i], h) - far(o[i], h) - far(c[i], n[j])) < -0.5:
                bonds.add((i, j))
    found, turns = np.zeros(length, int), set()
    for i in range(length):
        for j in range(length):
            along = {(i - 1, j), (j, i + 1)} <= bonds or {(j - 1, i), (i, j + 1)} <= bonds
            against = {(i, j), (j, i)} <= bonds or {(i - 1, j + 1), (j - 1, i + 1)} <= bonds
            if abs(i - j) > 2 and (along or against):
                found[i] = 2
    for turn in (3, 4, 5):
        for i in range(1, length):
            if {(i - 1, i - 1 + turn), (i, i + turn)} <= bonds:
                found[i : i + turn] = 1
                turns.add(turn)
    return found, turns


def test_secondary_structure_is_kabschs_and_sanders_bond_by_bond():
    """Of made helices of each kind, and of real chains, which have strands along and against each other."""
    kinds = set()
    for degrees in ((-49.0, -26.0), (-57.0, -47.0), (-57.0, -70.0)):  # of 3, 4 and 5 residues a turn
        made = proteins.build_backbone(*np.deg2rad(np.tile(degrees, (12, 1))).T)
        wanted, turns = by_hand(made)
        np.testing.assert_array_equal(proteins.secondary_structure(made), wanted)
        kinds |= {tuple(turns)}
    assert {turn for turns in kinds for turn in turns} == {3, 4, 5}
    states = []
    for chain in proteins.protein_chains()[::16]:
        whole = chain.coords[~np.isnan(chain.coords).any((1, 2))]
        wanted, _ = by_hand(whole)
        np.testing.assert_array_equal(proteins.secondary_structure(whole), wanted)
        states += wanted.tolist()
    assert min(np.bincount(states, minlength=3)) > 20


def test_quality_is_the_mean_share_within_four_distances_after_one_superposition():
    """No turn beside it is better in the mean square, distances stay, and a mirror image is not turned inside out."""
    rng = np.random.default_rng(0)
    native = 6 * rng.normal(size=(11, 3))
    models = np.stack(
        [native + spread * rng.normal(size=(11, 3)) for spread in (0.5, 2.0, 5.0)] + [native * [1, 1, -1]]
    )
    found = proteins.superpose(models, native)
    apart = np.linalg.norm(found - native, axis=-1)
    wanted = [np.mean([np.mean(row <= cutoff) for cutoff in (1, 2, 4, 8)]) for row in apart]
    np.testing.assert_allclose(proteins.gdt_ts(models, native), wanted)
    assert len(set(wanted)) == 4
    for model, placed in zip(models, found, strict=True):
        mutual = [np.linalg.norm(rows[:, None] - rows, axis=-1) for rows in (placed, model)]
        np.testing.assert_allclose(*mutual, atol=1e-9)
        there = placed - placed.mean(0)
        assert np.sign(np.linalg.det(there[:3])) == np.sign(np.linalg.det((model - model.mean(0))[:3]))
        for turn in np.linalg.qr(np.eye(3) + 0.05 * rng.normal(size=(20, 3, 3)))[0]:
            turn *= np.sign(np.diag(turn))
            other = there @ (turn * np.sign(np.linalg.det(turn))) + native.mean(0)
            assert ((other - native) ** 2).sum() >= ((placed - native) ** 2).sum() - 1e-9


def test_made_chains_and_cut_ones_keep_what_belongs_together():
    """Labels are of the whole chain, the residues and atoms of the same places; the same for the same seed."""
    made = proteins.synthetic_chains(3, 30, seed=4)
    again, other = proteins.synthetic_chains(3, 30, seed=4), proteins.synthetic_chains(3, 30, seed=5)
    for one, same, new in zip(made, again, other, strict=True):
        np.testing.assert_array_equal(one.coords, same.coords)
        np.testing.assert_array_equal(one.residues, same.residues)
        assert not np.array_equal(one.residues, new.residues)
        assert 0 <= one.residues.min() <= one.residues.max() < len(proteins.AMINO_ACIDS)
    cut = proteins.Backbones("protein-chains", num_chains=2, length=40)
    for number, chain in enumerate(proteins.protein_chains()[:2]):
        np.testing.assert_array_equal(cut.chains[number], chain.coords[:40])
        np.testing.assert_array_equal(cut.residues[number], chain.residues[:40])
        np.testing.assert_array_equal(cut.labels[number], proteins.secondary_structure(chain.coords)[:40])


def angles_of(chain):
    """φ, ψ, ω of every residue, and all bonds and angles along the backbone."""
    n, ca, c, o = np.moveaxis(np.asarray(chain, float), 1, 0)
    phi = [dihedral(c[i - 1], n[i], ca[i], c[i]) for i in range(1, len(n))]
    psi = [dihedral(n[i], ca[i], c[i], n[i + 1]) for i in range(len(n) - 1)]
    omega = [dihedral(ca[i], c[i], n[i + 1], ca[i + 1]) for i in range(len(n) - 1)]
    line = np.stack([n, ca, c], 1).reshape(-1, 3)
    steps = np.diff(line, axis=0)
    sizes = np.linalg.norm(steps, axis=1)
    bends = (steps[1:] * steps[:-1]).sum(1) / sizes[1:] / sizes[:-1]
    return (
        np.array(phi),
        np.array(psi),
        np.concatenate([sizes, bends, np.cos(omega), np.sin(omega), np.linalg.norm(o - c, axis=1)]),
    )


def test_decoys_are_turned_about_their_bonds_and_nowhere_else():
    """Bonds, their angles and ω stay. Without noise φ turns at three places at most; with it all turn, as said."""
    native = proteins.synthetic_chains(1, 40, seed=2)[0].coords
    phi, psi, rigid = angles_of(native)
    wrap = lambda x: (x + np.pi) % (2 * np.pi) - np.pi  # noqa: E731
    turns, spreads = [], []
    for decoy in proteins.hinge_decoys(np.random.default_rng(0), native, 40, spread=0.0):
        own_phi, own_psi, own_rigid = angles_of(decoy)
        np.testing.assert_allclose(own_rigid, rigid, atol=2e-3)
        np.testing.assert_allclose(wrap(own_psi - psi), 0, atol=2e-3)
        turned = np.abs(wrap(own_phi - phi)) > 5e-3
        assert turned.sum() <= 3
        turns += [wrap(own_phi - phi)[turned]]
        np.testing.assert_allclose(decoy[0, :2], native[0, :2], atol=1e-4)
    sizes = np.concatenate(turns)  # a size uniform in [0, 1] times 0.8 times a normal number: variance 0.64 / 3
    assert 90 < len(sizes) <= 120
    assert sizes.std() == pytest.approx(0.8 / np.sqrt(3), rel=0.35)
    for decoy in proteins.hinge_decoys(np.random.default_rng(1), native, 60, spread=0.1):
        spreads.append(wrap(angles_of(decoy)[1] - psi).std() / 0.1)
    assert np.max(spreads) < 1.4
    assert np.min(spreads) < 0.15
    assert np.mean(spreads) == pytest.approx(0.5, abs=4.5 * 0.3 / np.sqrt(60))
