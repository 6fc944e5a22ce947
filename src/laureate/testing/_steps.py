"""What trainers and learners share: a few steps from one start by one program, stopped, saved and gone on with."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import equinox as eqx
import jax

from laureate.testing._checks import (
    Check,
    Program,
    every_number_is_used,
    keys_used_once,
    no_retrace,
    numbers_as_arrays,
    same_bits,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["Steps", "arrays"]

NUMBER = 4


def arrays(tree: Any) -> Any:
    """Its arrays alone."""
    return eqx.filter(tree, eqx.is_array)


class Steps:
    """The first steps of a trainer; init and steps together use no key twice, and a state keeps its shapes.

    init: from the trainer to a state. step: ``(trainer, number, state, batch) -> (state, info)``, with the number of
    the step. ``start``, ``whole`` and ``info``: the first state, that after four steps and what the last one told.
    """

    def __init__(self, check: Check, trainer: Any, init: Callable, step: Callable, batch: Any):
        self.check, self.init, self.batch = check, init, batch
        self.trainer, self.program = numbers_as_arrays(trainer), Program(step)
        with KeyRecorder() as recorder:
            self.start = init(self.trainer)
            self.whole, self.info = jax.block_until_ready(self())
            keys_used_once(check, recorder)  # now: the program goes on noting its keys
        check.fixed_shapes(arrays(self.start), arrays(self.whole))

    def __call__(self, number: int = NUMBER, *, first: int = 0, **instead: Any) -> Any:
        """State and info after so many steps, with another ``state``, ``trainer`` or ``batch`` where given."""
        state, info = instead.get("state", self.start), None
        trainer, batch = instead.get("trainer", self.trainer), instead.get("batch", self.batch)
        for place in range(first, first + number):
            state, info = self.program(trainer, jax.numpy.asarray(place), state, batch)
        return state, info

    def numbers(
        self, others: Sequence[Any], unused: Collection[str], learned: Callable[[Any], Any], anew=False
    ) -> None:
        """No retrace on a further step nor for another number; others change what is learned, every number the state.

        A window or a rate of statistics, say, need not reach what is learned in four steps.
        anew: whether every trainer begins with a state of its own, as one does that brings its first weights. As they
            are in the state, every number must then change what is learned.
        """
        check, others = self.check, [numbers_as_arrays(other) for other in others]
        calls = [lambda: self(1, state=self.whole), *(lambda o=o: self(1, trainer=o) for o in others)]
        no_retrace(check, self.program, calls, len(others))
        if others and check.wants("numbers are used"):
            for other in others:
                same = same_bits(learned(self(trainer=other)[0]), learned(self.whole))
                check.require(not same, "something else learned for another number", "the same", "Is it used?")

        def taught(trainer):
            return learned(self(state=self.init(trainer), trainer=trainer)[0]) if anew else self(trainer=trainer)[0]

        every_number_is_used(check, self.trainer, lambda trainer: arrays(taught(trainer)), unused)

    def repeated(self) -> None:
        """The same start gives the same bits; saved and loaded it goes on as if it had not been stopped."""
        check = self.check
        if check.wants("same start, same bits"):
            remedy = "Draw by the step's number."
            check.bits(arrays(self()[0]), arrays(self.whole), "the same states from the same start", remedy)
        if check.wants("saved and loaded"):
            middle = check.saved(arrays(self(NUMBER // 2)[0]))
            rest = eqx.combine(middle, eqx.filter(self.start, eqx.is_array, inverse=True))
            onward = self(NUMBER - NUMBER // 2, first=NUMBER // 2, state=rest)[0]
            remedy = "Keep what is needed in the state."
            check.bits(arrays(onward), arrays(self.whole), "the steps of one go", remedy)
