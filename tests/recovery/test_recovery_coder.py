"""The coder in scikit-learn's manner with options by pairs, each row beside a second writing: nothing is trained."""

from typing import Any

import jax
import numpy as np
from sklearn.utils import check_random_state

from by_pairs import by_pairs
from laureate.recovery import SparseCoder, SupportSchedule, estimator

X = np.random.default_rng(0).normal(size=(6, 4)) * 3
ATOMS = {number: np.random.default_rng(number).normal(size=(number, 4)) for number in (3, 8, 9)}
OPTIONS: dict[str, tuple] = {
    "dictionary": (None, 3, 8),
    "n_components": (None, 3, 9),
    "num_layers": (10, 2),
    "density": (0.1, 0.9),
    "snr": (40.0, 7.0),
    "num_steps": (200, 3),
    "learning_rate": (0.02, 0.5),
    "batch": (64, 5),
    "random_state": (0, 3, "state"),
}


def test_a_coder_with_options_by_pairs_is_that_of_a_second_writing(monkeypatch):
    given: dict[str, Any] = {}

    def learn(key, signals, number):
        np.testing.assert_allclose(signals, X, rtol=1e-6)
        given["learned with"] = np.asarray(jax.random.key_data(key)).tolist()
        return ATOMS[number].T

    def network(unit, weight, num_layers, support):
        given.update(unit=np.asarray(unit), weight=weight, num_layers=num_layers, support=support)
        return np.asarray(unit)

    def train(key, solver, prior, snr, rate, steps, batch):
        given.update(trained_with=np.asarray(jax.random.key_data(key)).tolist(), prior=prior)
        given.update(snr=float(snr), learning_rate=float(rate), num_steps=steps, batch=batch)
        return solver

    monkeypatch.setattr(estimator, "_learned", learn)
    monkeypatch.setattr(estimator, "ALISTA", network)
    monkeypatch.setattr(estimator, "_trained", train)
    monkeypatch.setattr(estimator, "_codes", lambda solver, signals: np.asarray(signals) @ solver)
    for row in by_pairs(OPTIONS):
        given.clear()
        state = lambda row=row: np.random.RandomState(5) if row["random_state"] == "state" else row["random_state"]  # noqa: E731
        rows = None if row["dictionary"] is None else 2 * ATOMS[row["dictionary"]]
        made: Any = SparseCoder(**(row | {"dictionary": rows, "random_state": state()}))
        made.fit(X)
        first, second = jax.random.split(jax.random.key(int(check_random_state(state()).randint(2**31 - 1))))
        bits = [np.asarray(jax.random.key_data(key)).tolist() for key in (first, second)]
        assert given["trained_with"] == bits[1]
        assert ("learned with" in given) == (rows is None)
        if rows is None:
            assert given["learned with"] == bits[0]
            rows = ATOMS[row["n_components"] or 8]
        norms, atoms = np.linalg.norm(rows, axis=1), len(rows)
        unit: Any = (rows / norms[:, None]).T
        dual: Any = np.linalg.pinv(unit).T
        np.testing.assert_allclose(given["unit"], unit, rtol=1e-5)
        if atoms > 4:
            assert given["weight"] is None
        else:
            np.testing.assert_allclose(np.asarray(given["weight"]), dual, rtol=1e-3, atol=1e-5)
        for name in ("num_layers", "num_steps", "batch"):
            assert given[name] == row[name]
        np.testing.assert_allclose(
            [given["snr"], given["learning_rate"]], [row["snr"], row["learning_rate"]], rtol=1e-6
        )
        assert given["support"] == SupportSchedule(12 * row["density"], min(100.0, 130 * row["density"]))
        assert (given["prior"].size, given["prior"].density, given["prior"].scale) == (atoms, row["density"], 1.0)
        size = np.sqrt(np.mean(np.sum(X**2, axis=1)) / max(1.0, row["density"] * atoms))
        np.testing.assert_allclose(made.size_, size, rtol=1e-12)
        np.testing.assert_allclose(made.components_, rows, rtol=1e-6)
        codes = (X / size) @ unit * size / norms
        np.testing.assert_allclose(made.transform(X), codes, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(made.inverse_transform(codes), codes @ rows, rtol=1e-4, atol=1e-5)
        assert made.get_feature_names_out().tolist() == [f"sparsecoder{i}" for i in range(atoms)]
