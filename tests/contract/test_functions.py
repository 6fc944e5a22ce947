"""A row for every public function of arrays that draws nothing; ``laureate.testing`` has the check."""

import functools
import importlib
import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import (
    active,
    architecture,
    compression,
    control,
    decentralized,
    generative,
    gradients,
    graphs,
    grounding,
    imbalance,
    interpretation,
    memory,
    multitask,
    recovery,
    robustness,
    sampling,
    selection,
    training,
    uncertainty,
)
from laureate import representation as rep
from laureate.testing import check_function
from rooms import AREAS

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def uniform(*shape, low=0.1, high=0.9):
    return RNG.uniform(low, high, shape).astype(np.float32)


X, Y, Z = normal(6, 4), normal(6, 4), normal(6, 4)
GRAM = X @ X.T
SQUARE = X.T @ X / 6 + np.eye(4, dtype=np.float32)
LABELS = np.array([0, 1, 2, 3, 0, 1])
BINARY = np.array([0.0, 1, 1, 0, 1, 0], np.float32)
P = uniform(6)
ROWS_OF_P = np.asarray(jax.nn.softmax(X, axis=1))
PRIOR = np.log(np.array([0.4, 0.3, 0.2, 0.1], np.float32))
COUNTS = np.array([40.0, 30, 20, 10], np.float32)
RANKED = uncertainty.Ranked(np.array([1, 3, 2]), uniform(3, high=0.3), uniform(3, high=0.3), uniform(3, low=0.4))
SPACE = architecture.Space((("none", "skip"), ("skip", "conv3", "avg3")))
LAWS, OTHER_LAWS = normal(2, 3, 4), normal(2, 3, 4)
MACHINE = memory.BoltzmannMachine(jnp.asarray(0.3 * X[:4, :2]), jnp.asarray(X[4]), jnp.asarray(X[5, :2]))
SPINS = np.sign(X)
D = X[:, :4].T / np.linalg.norm(X, axis=1)
ONE, TWO = (tokens - tokens.mean(0) for tokens in (normal(20, 3), normal(20, 3)))
MOMENTS = interpretation.Moments(jnp.asarray(20), (X[0, :3], Y[0, :3]), (ONE.T @ ONE, ONE.T @ TWO, TWO.T @ TWO))
STEPS, OTHER_STEPS = (control.Transitions(mean + normal(8, 2), normal(8, 1), normal(8, 2)) for mean in (0, 3))
SETS = ROWS_OF_P > 0.25
GRADS = {"head": X[:3, :2], "trunk": normal(3, 2, 2)}
MESH = graphs.mesh_graph(np.array([[0.0, 0], [1, 0], [0, 1]]), [[0, 1, 2]], kinds=[3, 0, 0])
EDGES = (np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([True, True]), np.array([-1, -1, 2]), np.ones(3, bool))


def game(weights):
    return lambda masks: masks[:, 0] * masks[:, 1] + jnp.sin(masks @ weights)


def of_pool(name):
    """Of twenty points."""
    return lambda *arguments: getattr(active, name)(*arguments, 20)


def of_first(name):
    """Of the first model."""
    return lambda moments: getattr(interpretation, name)(moments, 0)


def stein(function):
    return lambda x, s: function(x, s, bandwidth=1.0)


RISKS = ("importance_risk", "lure_risk", "plain_risk", "pure_risk")
WEIGHTS = ("importance_weights", "lure_weights", "plain_weights", "pure_weights")
LOSSES = (
    "cross_entropy",
    "equalised_cross_entropy",
    "focal_cross_entropy",
    "label_margin_cross_entropy",
    "logit_adjusted_cross_entropy",
    "vector_scaling_cross_entropy",
    "weighted_cross_entropy",
)
Q = uniform(6, high=0.4)
# The function, with what selects code fixed, and its arguments.
ROWS = {
    "active.bias_report": (lambda x, q: active.bias_report(x, q, 20, jnp.mean(x)), P, Q),
    "active.lure_ratio": (lambda x, y, q: active.lure_ratio(x, y, q, 20), P, uniform(6), Q),
    **{f"active.{name}": (of_pool(name), P, Q) for name in RISKS},
    **{f"active.{name}": (of_pool(name), Q) for name in WEIGHTS},
    "architecture.cross_entropy": (architecture.cross_entropy, X, LABELS),
    "architecture.effective_weights": (
        lambda alpha, choice: architecture.effective_weights(SPACE, alpha, choice),
        normal(2, 3),
        np.array([-1, 2]),
    ),
    "architecture.optimal_mixture": (architecture.optimal_mixture, 1.0, 3.0, 0.1),
    "architecture.without_edges": (architecture.without_edges, normal(3, 2), np.array([0, 2])),
    "architecture.without_operations": (architecture.without_operations, normal(3, 2), np.array(1)),
    "compression.nearest": (compression.nearest, X, Y[:3]),
    "compression.pack": (lambda codes: compression.pack(codes, 3), LABELS),
    "compression.unpack": (lambda packed: compression.unpack(packed, 3, 6), np.array([200, 90, 17], np.uint8)),
    "control.aggregate_scores": (control.aggregate_scores, P, np.zeros(6, np.float32), 2 + P),
    "control.convolve_down": (control.convolve_down, normal(6, 6, 2), normal(4, 4, 2, 3)),
    "control.convolve_up": (control.convolve_up, normal(2, 2, 2), normal(3, 3, 2, 2)),
    "control.fit_linear_dynamics": (control.fit_linear_dynamics, STEPS, 0.1),
    "control.dynamics_alignment": (lambda x, y: control.dynamics_alignment(x, y, 2), STEPS, OTHER_STEPS),
    "control.moment_alignment": (control.moment_alignment, X, Y),
    "control.transition_distance": (control.transition_distance, STEPS, OTHER_STEPS),
    "control.gae": (
        lambda r, v, n, t, gamma: control.gae(r, v, n, terminated=t, gamma=gamma),
        *(P, X[:, 0], X[:, 1], BINARY > 0, 0.9),
    ),
    "control.kl_balance": (
        lambda q, p: control.kl_balance(control.OneHot(3, 4), q, p),
        *(normal(2, 12), normal(2, 12)),
    ),
    "control.kernel_regression": (control.kernel_regression, X, Y),
    "control.lambda_return": (lambda r, n, d, e: control.lambda_return(r, n, d, ended=e), P, X[:, 0], P, BINARY > 0),
    "control.straight_through_one_hot": (control.straight_through_one_hot, X, P),
    "control.top_influence": (control.top_influence, P, np.zeros(6, np.float32), 2 + P),
    "decentralized.stack": (lambda tree: decentralized.stack(tree, 3), GRADS),
    "generative.absolute_error": (generative.absolute_error, X, Y),
    "generative.copy_share": (generative.copy_share, X, Y, Z),
    "generative.covered_arc": (lambda x: generative.covered_arc(x, num_bins=8), X[:, :2]),
    "generative.divergence": (generative.divergence, X, Y),
    "generative.diversity": (generative.diversity, X),
    "generative.energy_distance": (generative.energy_distance, X, Y),
    "generative.energy_score": (generative.energy_score, X, Y[0]),
    "generative.frechet_distance": (generative.frechet_distance, X, Y),
    "generative.imitation_reward": (generative.imitation_reward, X),
    "generative.mode_report": (generative.mode_report, X, Y, 0.8),
    "generative.precision_recall": (generative.precision_recall, X, Y),
    "generative.split_latents": (lambda z: generative.split_latents(z, 2), X),
    "generative.squared_error": (generative.squared_error, X, Y),
    "generative.visits": (
        lambda start, policy: generative.visits(
            generative.FiniteEnvironment(
                jnp.array([[0, 1], [1, 0]]), start, jnp.eye(2, dtype=start.dtype), discount=0.5
            ),
            policy,
        ),
        *(np.array([0.7, 0.3], np.float32), uniform(2, 2)),
    ),
    "gradients.exact_gradient": (
        lambda w, x: gradients.exact_gradient(lambda z: jnp.sum(jnp.sin(z * w)), x),
        *(X[:2, :3], Y[:2, :3]),
    ),
    "graphs.backbone_features": (graphs.backbone_features, normal(3, 4, 3), *EDGES),
    "graphs.free_nodes": (graphs.free_nodes, MESH),
    "graphs.quality_loss": (graphs.quality_loss, X[:, :2], Y[:, :2]),
    "graphs.radius_edges": (lambda x: graphs.radius_edges(x, 1.5, 20), X),
    "graphs.relative_errors": (graphs.relative_errors, normal(4, 3, 2), normal(4, 3, 2), MESH),
    "graphs.rotate": (lambda s, v, m: graphs.rotate((s, v), m), X, normal(6, 2, 3), normal(3, 3)),
    "graphs.segment_sum": (lambda x, segments: graphs.segment_sum(x, segments, 4), X, LABELS),
    "grounding.add_locations": (grounding.add_locations, normal(2, 3, 4, 2)),
    "grounding.double": (lambda x, k: grounding.double(x, k, (4, 6)), normal(2, 2, 3, 2), normal(3, 3, 2, 2)),
    "grounding.filter_each": (grounding.filter_each, normal(2, 4, 4, 2), normal(2, 3, 3, 2, 3)),
    "grounding.halve": (grounding.halve, normal(2, 4, 5, 2), normal(3, 3, 2, 3)),
    "grounding.multiscale_loss": (
        lambda fine, coarse, masks: grounding.multiscale_loss([coarse, fine], masks),
        *(normal(2, 4, 4), normal(2, 2, 2), normal(2, 4, 4) > 0),
    ),
    "grounding.normalise_kernels": (grounding.normalise_kernels, normal(2, 3, 3, 2, 2)),
    "grounding.overlaps": (
        lambda p, masks: grounding.overlaps(p, masks, thresholds=(0.3, 0.6)),
        *(uniform(2, 4, 4), normal(2, 4, 4) > 0),
    ),
    "grounding.resize_nearest": (lambda masks: grounding.resize_nearest(masks, (2, 3)), normal(2, 4, 6)),
    "imbalance.adjust": (lambda x, prior, tau: imbalance.adjust(x, prior, tau=tau), X, PRIOR, 0.5),
    "imbalance.balanced_error": (lambda found, y: imbalance.balanced_error(found, y, 4), LABELS[::-1].copy(), LABELS),
    "imbalance.class_counts": (lambda y: imbalance.class_counts(y, 4), LABELS),
    "imbalance.class_errors": (lambda found, y: imbalance.class_errors(found, y, 4), LABELS[::-1].copy(), LABELS),
    "imbalance.log_prior": (imbalance.log_prior, COUNTS),
    "imbalance.normalise_weights": (imbalance.normalise_weights, X, PRIOR),
    "imbalance.pairwise_margin_cross_entropy": (imbalance.pairwise_margin_cross_entropy, X, LABELS, COUNTS, SQUARE),
    "imbalance.tune_tau": (imbalance.tune_tau, X, LABELS, PRIOR, np.array([0.5, 1.0], np.float32)),
    **{f"imbalance.{name}": (getattr(imbalance, name), X, LABELS, PRIOR) for name in LOSSES},
    "interpretation.erasure_masks": (interpretation.erasure_masks, np.array([2, 0, 1, 3]), np.float32([0.25, 0.5])),
    "interpretation.explained_variance": (lambda x, y: interpretation.explained_variance(x, y, 4), X, LABELS),
    "interpretation.fit_probe": (lambda x, y: interpretation.fit_probe(x, y, 2), X, LABELS % 2),
    "interpretation.keep_directions": (interpretation.keep_directions, X[:4, :3], np.array([True, False, True])),
    "interpretation.mean_difference": (interpretation.mean_difference, X, LABELS % 2),
    "interpretation.output_norm": (interpretation.output_norm, X),
    "interpretation.property_units": (lambda x: interpretation.property_units(x, 2), P),
    "interpretation.ranked": (interpretation.ranked, P),
    "interpretation.score_probe": (
        lambda x, y: interpretation.score_probe(interpretation.fit_probe(x, y, 2), x, y),
        *(X, LABELS % 2),
    ),
    "interpretation.steer": (interpretation.steer, X[0], X[1], 0.5),
    "interpretation.svcca": (lambda moments: interpretation.svcca(moments, 0, 1), MOMENTS),
    **{
        f"interpretation.{name}": (of_first(name), MOMENTS)
        for name in ("linear_regression", "max_corr", "min_corr", "standard_deviation")
    },
    "memory.hebbian_weights": (memory.hebbian_weights, SPINS),
    "memory.log_likelihood": (memory.log_likelihood, MACHINE, SPINS),
    "memory.log_partition": (memory.log_partition, MACHINE),
    "memory.to_hopfield": (memory.to_hopfield, MACHINE),
    "multitask.imtl_weights": (multitask.imtl_weights, GRAM[:3, :3]),
    "multitask.mgda_weights": (lambda gram: multitask.mgda_weights(gram, num_steps=20), GRAM[:3, :3]),
    "multitask.task_geometry": (multitask.task_geometry, GRADS),
    "multitask.task_gram": (multitask.task_gram, GRADS),
    "multitask.vaccine": (
        multitask.vaccine,
        *(GRAM[:3, :3], np.full((3, 3), 0.3, np.float32), np.array([[1, 2], [2, 0], [0, 1]])),
    ),
    "recovery.analytic_conv_weight": (recovery.analytic_conv_weight, normal(2, 3, 3)),
    "recovery.circular_conv_weight": (lambda filters: recovery.circular_conv_weight(filters, 5), normal(2, 3, 3)),
    "recovery.analytic_weight": (recovery.analytic_weight, D),
    "recovery.coherence": (recovery.coherence, D),
    "recovery.coherence_loss": (recovery.coherence_loss, D),
    "recovery.nmse_db": (recovery.nmse_db, X, Y),
    "recovery.select_and_shrink": (lambda v, t, c: recovery.select_and_shrink(v, t, c, 3), X, 0.1, np.array(2)),
    "recovery.soft_threshold": (recovery.soft_threshold, X, 0.3),
    "recovery.squared_error": (recovery.squared_error, X, X, Y),
    "representation.accuracy": (rep.accuracy, LABELS, np.array([0, 1, 2, 0, 1, 2])),
    "representation.alignment": (rep.alignment, SQUARE, X[:4]),
    "representation.apply_to_batch": (lambda w, x: rep.apply_to_batch(lambda one: one @ w, x), X[:4], Y),
    "representation.collapse_report": (rep.collapse_report, X),
    "representation.effective_rank": (rep.effective_rank, P),
    "representation.knn_probe": (
        lambda x, y, labels, others: rep.knn_probe(x, labels, y, others, 4, k=2),
        *(X, X + 0.1 * Y, LABELS, np.array([0, 1, 2, 0, 1, 2])),
    ),
    "robustness.cross_entropy": (robustness.cross_entropy, X, LABELS),
    "robustness.decay_gradient": (robustness.decay_gradient, X, 0.5),
    "robustness.exact_interactions": (lambda w: robustness.exact_interactions(game(w), 3), X[0, :3]),
    "robustness.fooled": (lambda w, x, y: robustness.fooled(lambda rows: rows @ w, x, y), X[:4], Y, LABELS),
    "robustness.interaction_sums": (lambda w: robustness.interaction_sums(game(w), 3), X[0, :3]),
    "robustness.margin": (robustness.margin, X, LABELS),
    "robustness.mean_interaction": (lambda w: robustness.mean_interaction(game(w), 3), X[0, :3]),
    "robustness.mean_of_pairs": (robustness.mean_of_pairs, SQUARE),
    "robustness.shapley_values": (lambda w: robustness.shapley_values(game(w), 3), X[0, :3]),
    "sampling.hamming_distance": (sampling.hamming_distance, SPINS, SPINS[0]),
    "sampling.hamming_mmd": (sampling.hamming_mmd, SPINS, np.sign(Y)),
    "sampling.ksd": (stein(sampling.ksd), X, -X),
    "sampling.mixing": (sampling.mixing, normal(3, 8)),
    "sampling.sliced_ksd": (stein(sampling.sliced_ksd), X, -X),
    "selection.critic_loss": (
        lambda w, x, y, mix: selection.critic_loss(lambda rows: jnp.tanh(rows @ w), x, y, mix),
        *(X[0], X, Y, P[:, None]),
    ),
    "selection.e_values": (selection.e_values, 1 + X[:, 0], 0.5),
    "selection.information": (
        lambda w, x, y: selection.information(lambda a, b: jnp.tanh(a * b * w), x, y, x[::-1]),
        *(X[0], X, Y),
    ),
    "selection.knockoff_filter": (selection.knockoff_filter, 1 + X[:, 0], 0.5),
    "selection.knockoff_threshold": (selection.knockoff_threshold, 1 + P, 0.5),
    "selection.mine_values": (
        lambda w, b, x, y: selection.mine_values((w, b), x, y),
        normal(4, 3, 3),
        normal(4, 3),
        X,
        Y,
    ),
    "selection.select_by_e_values": (selection.select_by_e_values, 10 * P, 0.5),
    "selection.solve_s": (lambda c: selection.solve_s(c, "equi"), SQUARE),
    "selection.swap": (selection.swap, X, Y, X > 0),
    "selection.swap_loss": (
        lambda w, x, y: selection.swap_loss(lambda u, h: u[:, :4] * w + h, x, y, (x > 0) * 1.0, (y > 0) * 1.0),
        *(X[0], X, Y),
    ),
    "training.cross_entropy": (training.cross_entropy, X, LABELS),
    "training.participation_ratio": (training.participation_ratio, X),
    "training.predict": (lambda w, x: training.predict([training.Dense(w)], x), X[:4], Y),
    "uncertainty.bin_counts": (uncertainty.bin_counts, P, BINARY > 0, np.float32([0.0, 0.5, 1.0])),
    "uncertainty.brier": (uncertainty.brier, P, BINARY),
    "uncertainty.by_class": (lambda y, covered: uncertainty.by_class(y, covered, 4), LABELS, BINARY > 0),
    "uncertainty.by_rank": (uncertainty.by_rank, 1 + LABELS, BINARY > 0),
    "uncertainty.by_size": (uncertainty.by_size, LABELS, BINARY > 0),
    "uncertainty.clopper_pearson": (uncertainty.clopper_pearson, np.array([0, 3, 10]), np.array(10), 0.1),
    "uncertainty.conformal_quantile": (uncertainty.conformal_quantile, P, 0.3),
    "uncertainty.coverage": (uncertainty.coverage, SETS, LABELS),
    "uncertainty.cumulative_difference": (uncertainty.cumulative_difference, P, BINARY),
    "uncertainty.ece": (lambda p, y: uncertainty.ece(p, y, num_bins=3), P, BINARY),
    "uncertainty.fit_temperature": (lambda x, y: uncertainty.fit_temperature(x, y, num_steps=5), X, LABELS),
    "uncertainty.fixed_sequence": (uncertainty.fixed_sequence, np.sort(P), 0.5),
    "uncertainty.ks_error": (uncertainty.ks_error, P, BINARY),
    "uncertainty.ks_test": (uncertainty.ks_test, P, BINARY),
    "uncertainty.lac_score": (uncertainty.lac_score, RANKED),
    "uncertainty.mean_size": (uncertainty.mean_size, SETS),
    "uncertainty.nll": (uncertainty.nll, P, BINARY),
    "uncertainty.pool_adjacent_violators": (uncertainty.pool_adjacent_violators, P, uniform(6)),
    "uncertainty.rank_all": (uncertainty.rank_all, ROWS_OF_P),
    "uncertainty.rank_label": (uncertainty.rank_label, ROWS_OF_P, LABELS),
    "uncertainty.raps_score": (uncertainty.raps_score, RANKED, uniform(3), np.array(1), 0.1),
    "uncertainty.saps_score": (uncertainty.saps_score, RANKED, uniform(3), 0.1),
    "uncertainty.set_of_size": (uncertainty.set_of_size, ROWS_OF_P, np.array([1, 2, 3, 0, 4, 2])),
    "uncertainty.top_k_score": (uncertainty.top_k_score, RANKED, uniform(3)),
    "uncertainty.top_scores": (uncertainty.top_scores, ROWS_OF_P, LABELS),
    "uncertainty.within_scores": (uncertainty.within_scores, ROWS_OF_P, LABELS),
    "uncertainty.worst_violation": (
        lambda size, covered, alpha: uncertainty.worst_violation(size, covered, alpha, min_count=1),
        *(LABELS, BINARY > 0, 0.1),
    ),
}

# Shares and kernels of counts: they depend on no floating number but by a comparison, and are float32 always.
OF_COUNTS = {
    "generative.covered_arc",
    "generative.mode_report",
    "generative.precision_recall",
    "representation.accuracy",
    "representation.knn_probe",
    "sampling.hamming_mmd",
    "uncertainty.coverage",
}
HOST = "on the host, with NumPy or SciPy: "
CHECKS = "checks that raise: "
DRIVERS = "drivers of a method or model: "
INSIDE = "inside "
FILES = "files and processes: "
OPTIMISERS = "Optax's transformations: "
REASONS = {
    "active": {CHECKS + "tests/active/test_active_use.py": {"check_log"}},
    "architecture": {
        HOST + "tests/architecture/test_architecture_use.py": {"hypervolume", "pareto"},
        DRIVERS + "tests/contract/test_drivers_resume.py": {"tabular"},
    },
    "compression": {
        "models with packed weights: tests/compression/test_compression_models.py": {"dequantize"},
        "of a model's weights: tests/compression/test_compression_noise.py": {"excess"},
        "from shapes and paths alone: tests/compression/test_compression_models.py": {"expected_bytes", "match"},
        HOST + "tests/compression/test_compression_iterative.py": {"package"},
        FILES + "tests/compression/test_compression_models.py": {"load", "save"},
    },
    "control": {
        "losses of DreamerV2, which has a row: tests/control/test_dreamer_exact.py": {
            "actor_loss",
            "critic_loss",
            "imagined_returns",
        },
        CHECKS + "tests/control/test_dynamics_cycle_exact.py": {"check_domains"},
        CHECKS + "tests/control/test_dreamer_exact.py": {"check_sequences"},
        "of an environment: tests/control/test_control_use.py": {"law_of"},
        DRIVERS + "tests/control/test_episodes.py": {"player"},
        HOST + "tests/control/test_dynamics_cycle_exact.py": {"symmetries", "transitions_of"},
    },
    "decentralized": {
        "networks, on the host: tests/decentralized/test_gossip.py": {
            "complete",
            "exponential",
            "from_graph",
            "hypercube",
            "random",
            "ring",
            "star",
            "torus",
        },
        HOST + "tests/decentralized/test_gossip.py": {
            "constant_weights",
            "metropolis_weights",
            "optimal_weights",
            "spectral_gap",
            "spectrum_ends",
        },
        HOST + "tests/decentralized/test_decentralized.py": {"exact_factors"},
        FILES + "tests/decentralized/test_processes.py": {"launch"},
        FILES + "tests/decentralized/on_four_processes.py": {"connect"},
        INSIDE + "train(mesh=...): tests/decentralized/test_decentralized_users.py": {"place"},
        "of a function that is only traced: tests/decentralized/test_decentralized.py": {"count_bytes"},
    },
    "generative": {
        HOST + "tests/generative/test_biggan_exact.py": {"biggan_settings", "truncated_variance"},
        CHECKS + "tests/generative/test_biggan_bad_input.py": {"images_and_labels"},
        "of a network's weights: tests/generative/test_biggan_exact.py": {"top_singular_values"},
    },
    "gradients": {"of counts alone: tests/gradients/test_categorical_exact.py": {"all_choices"}},
    "graphs": {
        "makers of graphs, on the host: tests/layers/test_graphs.py": {
            "batch_graphs",
            "make_graph",
            "pad_graph",
            "pad_to_bucket",
        },
        HOST + "tests/graphs/test_mesh_exact.py": {"barycentric", "edges_from_cells", "mesh_graph"},
        CHECKS + "tests/graphs/test_mesh_exact.py": {"check_room"},
        HOST + "tests/graphs/test_gvp_exact.py": {"featurize_backbone"},
        "from and to other libraries: tests/graphs/test_convert.py": {
            "from_jraph",
            "from_networkx",
            "to_jraph",
            "to_networkx",
            "to_numpy",
        },
        FILES + "tests/graphs/test_gvp_backbone.py": {"read_backbone"},
        FILES + "tests/graphs/test_mesh_training.py": {"read_mesh"},
        DRIVERS + "tests/graphs/test_mesh_training.py": {"rollout", "rollout_with"},
    },
    "grounding": {
        HOST + "tests/grounding/test_grounding_scores.py": {"count_masks"},
        HOST + "tests/grounding/test_grounding_training.py": {"choose_threshold", "make_examples"},
        DRIVERS + "tests/grounding/test_grounding_training.py": {"predict"},
    },
    "interpretation": {
        DRIVERS + "tests/interpretation/test_interpretation_changes.py": {"ablation_effects", "control", "erase_curve"},
        "models with hooks: tests/interpretation/test_interpretation_changes.py": {"insert", "module_paths"},
        HOST + "tests/interpretation/test_interpretation_changes.py": {"rank_agreement"},
        HOST + "tests/interpretation/test_interpretation_reports.py": {"collect"},
        HOST + "tests/interpretation/test_interpretation_significance.py": {"expected_null", "score_interval"},
        HOST + "tests/interpretation/test_interpretation_bad_input.py": {"flatten_tokens"},
        FILES + "tests/interpretation/test_interpretation_bad_input.py": {"open_activations"},
    },
    "memory": {
        "of counts alone: tests/memory/test_memory_twins.py": {"all_spins"},
        HOST + "tests/memory/test_memory_use.py": {"class_patterns", "principal_weights"},
        HOST + "tests/memory/test_memory_exact.py": {"store", "to_boltzmann_machine"},
    },
    "multitask": {
        OPTIMISERS + "tests/contract/test_multitask_contract.py": {
            "aggregator",
            "gradnorm",
            "imtl",
            "imtl_g",
            "imtl_l",
            "inverse_loss",
            "mgda",
            "uncertainty",
            "uniform",
            "unit_sum",
        },
        OPTIMISERS + "tests/multitask/test_multitask_options.py": {"select"},
    },
    "recovery": {
        "dictionaries and their matrices: tests/recovery/test_recovery_options.py": {"as_dictionary", "dense_matrix"},
        HOST + "tests/recovery/test_solvers.py": {"certified_schedule", "max_sparsity"},
    },
    "representation": {
        DRIVERS + "tests/representation/test_representation.py": {"linear_probe"},
    },
    "robustness": {
        CHECKS + "tests/robustness/test_robustness_bad_input.py": {"check_network"},
        HOST + "tests/robustness/test_robustness_transfer.py": {
            "compare_transfer",
            "leave_one_out",
            "partial_rank_correlation",
            "rank_correlation",
        },
        "games and who plays them: tests/robustness/test_robustness_interactions.py": {
            "grid_players",
            "perturbation_game",
            "players_from",
            "tabulate",
        },
        DRIVERS + "tests/robustness/test_robustness_transfer.py": {"transfer"},
    },
    "sampling": {"makers of samplers: tests/sampling/test_stein_users.py": {"sliced_svgd", "svgd"}},
    "selection": {
        "makers of samplers: tests/selection/test_selection_gan.py": {"RefinedKnockoffs"},
        HOST + "tests/selection/test_selection_gaussian.py": {"discrete_columns"},
        HOST + "tests/selection/test_selection_filters.py": {"unattainable"},
        FILES + "tests/selection/test_selection_selector.py": {"score_blind_list"},
    },
    "training": {
        "of programs that are only traced: tests/training/test_training_cost.py": {
            "cost_table",
            "count_operations",
            "step_cost",
        },
        "paths in a block: tests/training/test_training_rules.py": {"weights_of"},
    },
    "uncertainty": {
        HOST + "tests/uncertainty/test_confidence_exact.py": {
            "cascade_bounds",
            "hoeffding",
            "jeffreys",
            "wald",
            "wilson",
        },
        HOST + "tests/uncertainty/test_raps_exact.py": {"coverage_law", "tune_raps"},
    },
}
WITH_ROWS = sorted({name.split(".")[0] for name in ROWS})
OUTSIDE = {"NumPy is taken", "the same inside jit"}  # dear: outside jit every operation is a program of its own


def names_of(area):
    return [name for name in ROWS if name.startswith(f"{area}.")]


def together(names):
    """The functions of an area as one: they share their programs, and a message tells whose result it is."""

    def area(arguments):
        return {name: ROWS[name][0](*arguments[name]) for name in names}

    return area, {name: ROWS[name][1:] for name in names}


@pytest.mark.parametrize("area", WITH_ROWS)
def test_other_numbers_and_batches(area):
    check_function(*together(names_of(area)), float64=False, skip=OUTSIDE, name=area)


@pytest.mark.slow
@pytest.mark.parametrize("area", WITH_ROWS)
def test_outside_jit_and_in_double_precision(area):
    for name in sorted(set(names_of(area)) & OF_COUNTS):
        check_function(*together([name]), float64=False, name=area)
    if names := [name for name in names_of(area) if name not in OF_COUNTS]:
        check_function(*together(names), name=area)


def test_shares_of_counts_are_rows():
    assert set(ROWS) >= OF_COUNTS


@functools.cache
def public(area):
    """Public functions without a key."""
    module = importlib.import_module(f"laureate.{area}")
    found = {name: getattr(module, name) for name in module.__all__ if callable(getattr(module, name))}
    functions = {name: one for name, one in found.items() if not inspect.isclass(one)}
    return {name for name, one in functions.items() if "key" not in inspect.signature(one).parameters}


@pytest.mark.parametrize("area", AREAS)
def test_every_function_without_a_key_has_a_row_or_a_reason(area):
    rows = {name.split(".", 1)[1] for name in names_of(area)}
    named = [name for names in REASONS.get(area, {}).values() for name in names]
    assert len(named) == len(set(named)), f"two reasons for one function of {area}"
    lacking = sorted(public(area) - rows - set(named))
    assert not lacking, f"no row in ROWS and no reason in REASONS for {area}: {lacking}"
    stale = sorted(name for name in named if name not in public(area) or name in rows)
    assert not stale, f"{stale} of REASONS[{area!r}] have a row, take a key or are no longer public"
    assert not rows - public(area), f"rows of {area} named after no public function without a key"


def test_the_files_that_reasons_name_speak_of_the_functions():
    for area, reasons in REASONS.items():
        for reason, names in reasons.items():
            words = (ROOT / reason.rpartition(": ")[2]).read_text(encoding="utf-8")
            silent = sorted(name for name in names if name not in words and not reason.startswith(INSIDE))
            assert not silent, f"{reason} says nothing of {area}: {silent}"
