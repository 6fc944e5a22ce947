"""Which random keys a function consumes, and whether one is consumed twice."""

import functools
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["KeyRecorder"]

# These make or read keys and draw nothing. fold_in is noted apart: it may be called often with one key, and what counts
# is whether the keys that it makes are consumed once each.
HARMLESS = {"PRNGKey", "clone", "key", "key_data", "key_impl", "wrap_key_data"}


class KeyRecorder:
    """Inside the ``with`` block every draw and every split through ``jax.random`` is noted with the key it consumes.

    A function that is traced inside the block reports its keys whenever it runs, also from loops, ``vmap`` and ``jit``;
    one that was traced before does not. Two draws from one key are the same numbers twice: correlated noise, which no
    test of a single step can see.

    By jax's default ``split(key, n)[i]`` is ``fold_in(key, i)``, bit for bit: a key that is split into n and into which
    a number below n is folded gives one key twice. And ``bits(key)`` is the exclusive or of the two words of
    ``fold_in(key, 0)``: what is drawn from a key depends on what is drawn from keys folded from it. Both are
    told, whatever ``jax_threefry_partitionable`` says. Folding the same number in twice is told by what is drawn from
    the two keys.

    >>> with KeyRecorder() as recorder:
    ...     key = jax.random.key(0)
    ...     pair = jax.random.normal(key, (2,)), jax.random.uniform(key)
    >>> recorder.reused()
    ['normal and uniform']

    place: called wherever something is drawn, while it is traced: where it is, in a word that is told with the draw.

    >>> with KeyRecorder(place=lambda: "start") as recorder:
    ...     pair = jax.random.normal(key, (2,)), jax.random.normal(key)
    >>> recorder.reused()
    ['normal in start, 2 times']
    """

    def __init__(self, place: Callable[[], str] | None = None) -> None:
        self.place = place
        self.uses: dict[bytes, Counter[str]] = defaultdict(Counter)
        self._parts: Counter[bytes] = Counter()  # into how many a key was split, at most
        self._folded: dict[bytes, dict[int, bytes]] = defaultdict(dict)  # what was folded into it, and the key it gave
        self._originals: dict[str, Any] = {}

    def __enter__(self) -> "KeyRecorder":
        for name in dir(jax.random):
            original = getattr(jax.random, name)
            if callable(original) and not name.startswith("_") and name not in HARMLESS:
                self._originals[name] = original
                setattr(jax.random, name, self._recording(name, original))
        return self

    def __exit__(self, *exception: Any) -> None:
        for name, original in self._originals.items():
            setattr(jax.random, name, original)
        self._originals.clear()

    def _recording(self, name: str, original: Any) -> Any:
        @functools.wraps(original)
        def recording(*arguments: Any, **named: Any) -> Any:
            key = arguments[0] if arguments else named.get("key")
            result = original(*arguments, **named)
            if isinstance(key, jax.Array):
                typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
                bits = jax.random.key_data if typed else jnp.asarray
                data = bits(key)
                if name == "fold_in":
                    number = arguments[1] if len(arguments) > 1 else named["data"]
                    jax.debug.callback(self._note_fold, data, number, bits(result))
                else:
                    parts = result.size // key.size if name == "split" else 0
                    told = name if self.place is None else f"{name} in {self.place()}"
                    jax.debug.callback(functools.partial(self._note, told, parts), data)
            return result

        return recording

    def _note(self, name: str, parts: int, data: Any) -> None:
        data = np.asarray(data)
        for key in data.reshape(-1, data.shape[-1]):
            self.uses[key.tobytes()][name] += 1
            self._parts[key.tobytes()] = max(parts, self._parts[key.tobytes()])

    def _note_fold(self, data: Any, number: Any, made: Any) -> None:
        self._folded[np.asarray(data).tobytes()][int(number) % 2**32] = np.asarray(made).tobytes()

    def forget(self) -> None:
        """Begin anew."""
        jax.effects_barrier()
        self.uses.clear()
        self._parts.clear()
        self._folded.clear()

    def reused(self, shared: int = 1) -> list[str]:
        """What was drawn from one key more than once, or beside a fold; empty where no key was used twice.

        shared: how often one and the same draw may come from one key on purpose: 2 for antithetic pairs.
        """
        jax.effects_barrier()
        drawn = [
            " and ".join(sorted(uses)) if len(uses) > 1 else f"{next(iter(uses))}, {uses.total()} times"
            for uses in self.uses.values()
            if len(uses) > 1 or uses.total() > shared
        ]
        made = [
            f"split into {self._parts[key]} and fold_in of {min(numbers)}"
            for key, numbers in self._folded.items()
            if min(numbers) < self._parts[key]
        ]
        # A key that is folded and never used harms nobody: gradient estimators make such for workers that wait.
        used = self.uses.keys() | self._folded.keys()
        spent = [
            " and ".join(["fold_in", *others])
            for key, numbers in self._folded.items()
            if (others := sorted(use for use in self.uses.get(key, ()) if use.partition(" ")[0] != "split"))
            and not used.isdisjoint(numbers.values())
        ]
        return sorted(drawn + made + spent)
