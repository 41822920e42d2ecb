"""All that a step changes and the next one reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import foreign
from contact.solvers.base import below
from femsim.base.errors import InputError
from femsim.base.files import replacing
from femsim.step.force_memory import ForceMemory
from foreign.text import read_npz

#: Version of the files that hold a state.
VERSION = 10

Memory = Mapping[str, np.ndarray]


@dataclass(eq=False)
class State:
    """Where a simulation stands: restored, it goes on as if it had never stopped, see `Stepper.restore`.

    Two states are equal when all their numbers are, to the last bit.

    Attributes
    ----------
    q : ndarray, (nq,)
        Coordinates body after body: node positions (m); position (m) and quaternion of rigid bodies; joint positions (m or
        rad).
    v : ndarray, (nv,)
        Velocities body after body: node velocities (m/s); velocity (m/s) and world angular velocity (rad/s); joint speeds.
    t : float, s
        Time.
    v_hat : ndarray, (nv,)
        Representative velocity of the last step, where the next solve starts; at the start, and by default, v.
    step : int
        Number of steps taken.
    work, friction_loss : float, J
        Work of gravity, loads and drives since the start, and what friction of contacts has taken.
    joint_loss : float, J
        What damping and dry friction of joints have taken since the start; ``work`` is less by it.
    energy : float, J
        Kinetic and elastic.
    halving_is_vain : bool
        Whether the halves of the last step that could not be solved could not be solved either, see :mod:`femsim.step.advance`.
    bodies, couplings : tuple of dict of str to ndarray
        What each of them remembers beside its coordinates.
    contacts : tuple of ForceMemory
        Contact forces of the last step, of each family, where the next solve starts.
    sensors : dict of str to ndarray
        What sensors carry from step to step, by ``SENSOR/NAME``. Steps pass it on; who reads the sensors fills it, see
        :class:`femsim.run.sensors.Sensors`.
    dt : float, s
        Length of the last step, or of its last part; 0 at the start.
    level : int
        How often an adaptive run halves its longest step at present, see :mod:`femsim.step.adaptive`.
    ahead : bool
        Whether the next step is first linearised where it is thought to lead, see :class:`femsim.step.newton.Solved`.
    again : bool
        Whether the last step was linearised more than once, see :class:`femsim.step.newton.Solved`.
    whole : int
        Steps left that leave no contact out, since one that did was taken again, see :mod:`femsim.step.advance`.
    whole_again : int
        Steps that would leave none out after the next one that is taken again; 0 before the first.
    unpushed : int
        Steps left that push nothing apart, see :mod:`femsim.step.locked`.
    pressed : ndarray, (np,), N
        Sums of the contact forces on each part in the last step; empty at the start.
    before : ndarray, (k, nv)
        Representative velocities of the steps before the last one that were as long, newest first; k is at most 3, see
        :mod:`femsim.step.predict`.
    """

    q: np.ndarray
    v: np.ndarray
    t: float
    v_hat: np.ndarray = field(default_factory=lambda: np.zeros(0))
    step: int = 0
    work: float = 0.0
    friction_loss: float = 0.0
    halving_is_vain: bool = False
    bodies: tuple[Memory, ...] = ()
    couplings: tuple[Memory, ...] = ()
    contacts: tuple[ForceMemory, ...] = ()
    sensors: dict[str, np.ndarray] = field(default_factory=dict)
    dt: float = 0.0
    level: int = 0
    ahead: bool = False
    before: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    energy: float = 0.0
    again: bool = False
    joint_loss: float = 0.0
    whole: int = 0
    unpushed: int = 0
    pressed: np.ndarray = field(default_factory=lambda: np.zeros(0))
    whole_again: int = 0

    def __post_init__(self) -> None:
        if len(self.v_hat) != len(self.v):
            self.v_hat = self.v.copy()

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers by name, as they are saved."""
        names = (
            "q", "v", "t", "v_hat", "step", "work", "friction_loss", "dt", "level", "halving_is_vain", "ahead", "before",
            "energy", "again", "joint_loss", "whole", "unpushed", "pressed", "whole_again",
        )  # fmt: skip
        out = {name: np.asarray(getattr(self, name)) for name in names}
        out["counts"] = np.array([len(self.bodies), len(self.couplings), len(self.contacts)])
        for kind, memories in (("body", self.bodies), ("coupling", self.couplings)):
            out |= {f"{kind}/{k}/{name}": value for k, memory in enumerate(memories) for name, value in memory.items()}
        for k, forces in enumerate(self.contacts):
            out |= {f"contacts/{k}/keys": forces.keys, f"contacts/{k}/forces": forces.forces}
        return out | {f"sensor/{name}": value for name, value in self.sensors.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> State:
        """Put together again what :meth:`arrays` gave."""
        bodies, couplings, families = (int(count) for count in arrays["counts"])
        return cls(
            arrays["q"], arrays["v"], float(arrays["t"]), arrays["v_hat"], int(arrays["step"]), float(arrays["work"]),
            float(arrays["friction_loss"]), bool(arrays["halving_is_vain"]),
            tuple(below(arrays, f"body/{k}") for k in range(bodies)),
            tuple(below(arrays, f"coupling/{k}") for k in range(couplings)),
            tuple(ForceMemory(arrays[f"contacts/{k}/keys"], arrays[f"contacts/{k}/forces"]) for k in range(families)),
            below(arrays, "sensor"), float(arrays["dt"]), int(arrays["level"]), bool(arrays["ahead"]), arrays["before"],
            float(arrays["energy"]), bool(arrays["again"]), float(arrays["joint_loss"]),
            int(arrays["whole"]), int(arrays["unpushed"]), arrays["pressed"], int(arrays["whole_again"]),
        )  # fmt: skip

    def copy(self) -> State:
        """Independent copy."""
        return State.from_arrays({name: value.copy() for name, value in self.arrays().items()})

    def to_look_at(self) -> State:
        """Give the same numbers to who may not change them: in arrays that are read-only, of a state whose fields are, too."""
        seen = object.__new__(SeenState)
        vars(seen).update(vars(State.from_arrays({name: _read_only(value) for name, value in self.arrays().items()})), _of=self)
        return seen

    def own(self) -> State:
        """Give a state that steps may start from: this one, or that of one to look at."""
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        mine, others = self.arrays(), other.arrays()
        return mine.keys() == others.keys() and all(_same_bits(value, others[name]) for name, value in mine.items())

    __hash__ = None  # type: ignore[assignment]  # states change

    def differences(self, other: State) -> list[str]:
        """Names of the numbers that differ from those of another state."""
        mine, others = self.arrays(), other.arrays()
        return sorted(
            name
            for name in {*mine, *others}
            if name not in mine or name not in others or not _same_bits(mine[name], others[name])
        )

    def save(self, path: Path | str) -> None:
        """Write the state to a file in numpy's format npz; it is there as a whole or not at all."""
        with replacing(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, version=np.array(VERSION), **self.arrays())

    @classmethod
    def load(cls, path: Path | str) -> State:
        """Read a file that :meth:`save` wrote.

        Raises
        ------
        InputError
            No such file, one that holds no state, or one of another version.
        """
        try:
            arrays = read_npz(Path(path))
        except (OSError, foreign.Refused) as error:
            raise InputError(
                f"{path}: cannot be read as the state of a simulation ({error}); give a file that femsim saved."
            ) from error
        label = arrays.pop("version", np.array(-1))
        version = int(label) if label.shape == () and label.dtype.kind in "iu" else -1
        if version != VERSION:
            found = "none" if version < 0 else f"version {version}"
            raise InputError(f"{path}: holds {found} of femsim's states; this femsim reads version {VERSION}, so save it again.")
        bad = [name for name, value in arrays.items() if value.dtype.kind == "f" and not np.isfinite(value).all()]
        if bad:
            raise InputError(f"{path}: {bad[0]} holds a value that is not finite; the file is damaged, take an earlier one.")
        try:
            return cls.from_arrays(arrays)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{path}: is no complete state ({error}); the file is damaged, take an earlier one.") from error


class SeenState(State):
    """A state to look at, see :meth:`State.to_look_at`; copies of it are as any other."""

    _of: State

    def to_look_at(self) -> State:
        """Return itself."""
        return self

    def own(self) -> State:
        """Return what it shows."""
        return self._of

    def __reduce__(self) -> tuple[Callable[[dict[str, np.ndarray]], State], tuple[dict[str, np.ndarray]]]:
        """Copy and pickle what it shows."""
        return State.from_arrays, ({name: value.copy() for name, value in self.arrays().items()},)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse to be changed."""
        raise AttributeError(
            f"{name} of the state of a simulation cannot be set, nor written into: contacts, energies and the health verdict "
            "would not know. The scene says where bodies start and how fast, sim.set and sim.push move them; "
            "state.copy() is yours."
        )


def _read_only(array: np.ndarray) -> np.ndarray:
    """Look at an array that nobody shall write into."""
    seen = array.view()
    seen.flags.writeable = False
    return seen


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
