"""Who may move the bodies of a scene: they are shared by all runs and simulations of it, in whatever threads."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock

from femsim.base.errors import InputError
from femsim.scene.scene import Scene
from femsim.step.stepper import Stepper


class Turn:
    """The turn to move the bodies of a scene: one thread has it at a time, for a step or as long as it reads them.

    Attributes
    ----------
    lock : RLock
        Held by the thread that has the turn.
    moving : bool
        Whether a step is being taken; only the thread that takes it sees that, in functions of the scene.
    """

    def __init__(self) -> None:
        self.lock, self.moving = RLock(), False

    @contextmanager
    def step(self) -> Iterator[None]:
        """Say while a step is taken that it is."""
        self.moving = True
        try:
            yield
        finally:
            self.moving = False

    def refuse_within_step(self, call: str, scene: Scene) -> None:
        """Refuse a call by a function of the scene.

        Raises
        ------
        InputError
            A step is being taken.
        """
        if self.moving:
            raise InputError(
                f"{call}: a step of {scene.name!r} is being taken or made ready, and a function of the scene calls this within "
                "it; call it between steps."
            )

    @contextmanager
    def of_run(self, stepper: Stepper) -> Iterator[None]:
        """Take the turn for a run, whose bodies stand again where it left them if others have moved them meanwhile."""
        with self.lock:
            if stepper.scene.mover is not stepper:
                for command in stepper.scene.commands.values():  # that others gave
                    command.release()
                stepper.restore(stepper.state)
                stepper.scene.mover = stepper
            yield


_TURNS: weakref.WeakKeyDictionary[Scene, Turn] = weakref.WeakKeyDictionary()
_ADDING = Lock()


def turn_of(scene: Scene) -> Turn:
    """Return the turn of a scene; the same one each time."""
    with _ADDING:
        return _TURNS.setdefault(scene, Turn())
