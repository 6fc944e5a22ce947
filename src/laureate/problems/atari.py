"""Montezuma's Revenge through Gymnasium, with the room that one is in written down."""

from typing import Any

import numpy as np

from laureate._core import require

__all__ = ["Montezuma", "shrunk"]

ROOM = 3  # the byte of the console's memory that holds the number of the room
HIGH, WIDE = 5, 4  # pixels that are averaged: 210 × 160 becomes 42 × 40


def shrunk(frame: np.ndarray) -> np.ndarray:
    """A grey picture of 210 × 160 with blocks of 5 × 4 pixels averaged.

    >>> shrunk(np.full((210, 160), 7, np.uint8)).shape
    (42, 40)
    """
    high, wide = frame.shape
    return frame.reshape(high // HIGH, HIGH, wide // WIDE, WIDE).mean((1, 3)).astype(np.uint8)


class Montezuma:
    """Makes environments: grey, 42 × 40, four frames stacked, actions held for four frames and repeated by chance.

    limit: steps of an episode, >= 1; the paper's 18,000 frames are 4,500.
    """

    def __init__(self, limit: int = 4500):
        require("Montezuma", "limit", ">= 1", limit, lambda n: n >= 1)
        self.limit = limit

    def make(self) -> Any:
        """One environment; ``get_wrapper_attr("rooms")`` lists the room after every step."""
        import ale_py  # pyright: ignore[reportMissingImports]
        import gymnasium  # pyright: ignore[reportMissingImports]

        class Rooms(gymnasium.ObservationWrapper):
            """Smaller pictures, and a list of rooms."""

            def __init__(self, inner: Any):
                super().__init__(inner)
                self.rooms: list[int] = []
                self.observation_space = gymnasium.spaces.Box(0, 255, (210 // HIGH, 160 // WIDE), np.uint8)

            def observation(self, observation: np.ndarray) -> np.ndarray:
                return shrunk(observation)

            def step(self, action: Any) -> Any:
                found = super().step(action)
                memory: Any = self.env.unwrapped
                self.rooms.append(int(memory.ale.getRAM()[ROOM]))
                return found

        gymnasium.register_envs(ale_py)
        game = gymnasium.make(
            "ALE/MontezumaRevenge-v5",
            obs_type="grayscale",
            frameskip=4,
            repeat_action_probability=0.25,
            max_episode_steps=self.limit,
        )
        return gymnasium.wrappers.FrameStackObservation(Rooms(game), 4)
