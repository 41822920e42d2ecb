"""A scene as an environment of gymnasium: actions are targets, observations and rewards are read from a simulation."""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NoReturn, Self

import gymnasium
import numpy as np
from gymnasium import spaces

from femsim.base.arguments import shown
from femsim.base.errors import InputError, did_you_mean
from femsim.run.simulation import Simulation, StepFailedError
from femsim.scene.scene import Scene

#: What to do instead of rendering.
_TO_SEE = "record an episode by fs.Simulation(env.build(rng), out=FOLDER), then femsim view FOLDER"


@dataclass(frozen=True)
class Reach:
    """Where an action may take a target.

    Parameters
    ----------
    low, high : float or sequence
        Least and largest value of the target, in its SI units; one number, or one for each component. Components whose two are
        equal stay there and have no action.
    rate : float, 1/s, optional
        An action of 1 moves the target by this much in a second, within ``low`` and ``high``, from ``start``. Default: an action
        of -1 is ``low``, of 1 ``high``.
    start : float or sequence, optional
        Where the target is at the beginning, with ``rate``. Default: where the scene has it.
    """

    low: Any
    high: Any
    rate: float | None = None
    start: Any = None

    def __post_init__(self) -> None:
        if self.rate is not None and not (isinstance(self.rate, Real) and np.isfinite(self.rate)):
            raise InputError(f"Reach: rate is {self.rate!r}; allowed are finite numbers, in 1/s, and None.")


class SceneEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """Base of environments; your class sets ``targets`` and implements ``build``, ``observe``, ``reward`` and ``success``.

    Actions are numbers from -1 to 1, one for each component of each target, in order. Every episode has a scene of its own.

    Attributes
    ----------
    targets : dict of str to Reach
        Targets of :meth:`~femsim.run.simulation.Simulation.set`, see its ``targets``.
    period : float, s
        Time between two actions; a target goes to its new value at constant speed within it.
    horizon : float, s
        An episode that lasts longer is truncated.
    options : dict
        Options of :class:`~femsim.run.simulation.Simulation`: solver, tolerance, max_halvings ...
    sim : Simulation
        The simulation of the episode.

    Raises
    ------
    InputError
        A target that the scene lacks or whose limits do not fit it, a period that is no whole number of steps, or a
        ``render_mode``, since environments draw nothing.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    targets: ClassVar[Mapping[str, Reach]] = {}
    period: ClassVar[float] = 0.05
    horizon: ClassVar[float] = 2.0
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, *, render_mode: None = None) -> None:
        what = type(self).__name__
        if render_mode is not None:
            raise InputError(f"{what}: render_mode is {render_mode!r}, but it draws nothing; leave it out, and {_TO_SEE}.")
        for name, value in (("period", self.period), ("horizon", self.horizon)):
            if not (isinstance(value, Real) and np.isfinite(value) and value > 0.0):
                raise InputError(f"{what}: {name} is {value!r}; allowed are positive numbers, in s.")
        if not isinstance(self.targets, Mapping) or not all(isinstance(reach, Reach) for reach in self.targets.values()):
            raise InputError(f"{what}: targets is {self.targets!r}; allowed are names of targets with a femsim.gym.Reach each.")
        self.sim = Simulation(self.build(np.random.default_rng(0)), **self.options)
        self._steps = round(self.period / self.sim.dt)
        if self._steps < 1:
            raise InputError(f"{what}: period is {self.period} s, but a step {self.sim.dt} s; make it longer.")
        if abs(self._steps * self.sim.dt - self.period) > 1e-6 * self.sim.dt:
            raise InputError(
                f"{what}: period is {self.period:g} s, no whole number of steps of {self.sim.dt:g} s; "
                f"{self._steps * self.sim.dt:g} s is one."
            )
        limits = {name: self._limits(name, reach) for name, reach in self.targets.items()}
        if not limits:
            raise InputError(f"{what}: it has no target; name some of {', '.join(self.sim.targets)} in targets.")
        self._low, self._high = (np.concatenate(ends) for ends in zip(*limits.values(), strict=True))
        ends = np.cumsum([len(low) for low, _ in limits.values()]).tolist()
        self._part = {name: slice(end - len(limits[name][0]), end) for name, end in zip(limits, ends, strict=True)}
        self._free = self._low < self._high
        self.action_space = spaces.Box(-1.0, 1.0, (int(self._free.sum()),), np.float64)
        self._begin()
        self._size: int | None = None
        self._size = len(self._seen())
        self.observation_space = spaces.Box(-np.inf, np.inf, (self._size,), np.float64)
        self._begun = False

    def _limits(self, name: str, reach: Reach) -> tuple[np.ndarray, ...]:
        """Least and largest values of a target, (k,) each."""
        if name not in self.sim.targets:
            raise InputError(f"{type(self).__name__}: target {name!r} is unknown{did_you_mean(name, self.sim.targets)}")
        what = f"{type(self).__name__}: reach of {name!r} is {reach}; allowed are"
        try:
            ends = (np.asarray(x, dtype=np.float64) for x in (reach.low, reach.high, 0.0 if reach.start is None else reach.start))
            low, high, start = (np.array(one) for one in np.broadcast_arrays(*np.atleast_1d(*ends)))
        except (TypeError, ValueError):
            raise InputError(f"{what} for each field one number, or as many as the target has components.") from None
        if low.ndim != 1 or not (np.isfinite(low) & np.isfinite(high) & np.isfinite(start) & (low <= high)).all():
            raise InputError(f"{what} finite numbers, low <= high.")
        for value in (low, high):  # says so where the target has another number of components, or a joint is not to go there
            self.sim.set(name, self._given(reach, value))
        self.sim.set(name, None)
        return low, high

    def _at_start(self, name: str, reach: Reach) -> np.ndarray:
        """Where a target starts, (k,), within its limits."""
        low, high = self._low[self._part[name]], self._high[self._part[name]]
        start = np.ravel(reach.start)
        if reach.start is None:
            commands = self.sim.stepper.scene.commands.values()
            said = np.ravel(next(one.given(self.sim.time) for one in commands if name in (one.name, one.label)))
            start = said[: len(low)] if len(said) >= len(low) else np.zeros(1)  # of a motion without its turn
        return np.clip(np.broadcast_to(np.asarray(start, dtype=np.float64), low.shape), low, high)

    @staticmethod
    def _given(reach: Reach, value: np.ndarray) -> Any:
        """Return what ``set`` is given: a number for a reach of single numbers."""
        return value if np.ndim(reach.low) or np.ndim(reach.high) else float(value[0])

    def _begin(self) -> None:
        self._values = np.concatenate([self._at_start(name, reach) for name, reach in self.targets.items()])

    # ------------------------------------------------------------------ what your class implements

    @abstractmethod
    def build(self, rng: np.random.Generator) -> Scene:
        """Build the scene of an episode; what varies comes from ``rng``.

        Further parameters, which have defaults, are what ``reset(options={...})`` takes.
        """

    @abstractmethod
    def observe(self, sim: Simulation) -> Any:
        """Return the observation, a fixed number of values."""

    @abstractmethod
    def reward(self, sim: Simulation) -> float:
        """Return the reward of the last action."""

    def success(self, sim: Simulation) -> bool:
        """Whether the task is done, which ends the episode."""
        return False

    # ------------------------------------------------------------------ what gymnasium calls

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode: a new scene with new noise of its readings, from the seed where one is given.

        ``options`` go to :meth:`build`, by the names of its parameters.
        """
        if seed is not None and (isinstance(seed, bool) or not (isinstance(seed, Integral) and seed >= 0)):
            raise InputError(f"{type(self).__name__}: seed is {seed!r}; allowed are whole numbers from 0.")
        build: Callable[..., Scene] = self.build
        given = self._options_of(build, options)
        super().reset(seed=None if seed is None else int(seed))
        scene = build(self.np_random, **given)
        self.sim.close()
        self.sim = Simulation(scene, **self.options)
        self.sim.reset(int(self.np_random.integers(2**31)))  # the noise of readings
        self._begin()
        self._begun = True
        return self._seen(), self._told()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Set the targets and go on for a period; return observation, reward, whether it is done, whether time is over, ``info``.

        That has the time, whether the steps converged, the health verdict, ``success``, and ``failed``, the sentence of a step
        that gave no numbers, which ends the episode; where it was the first of all, the reward is 0.
        """
        sim, given = self.sim, np.asarray(action)
        if given.shape != self.action_space.shape or given.dtype.kind not in "iuf" or not np.isfinite(given).all():
            count = int(self._free.sum())
            raise InputError(f"{type(self).__name__}: action is {action!r}; allowed are {count} numbers from -1 to 1.")
        if not self._begun:
            raise InputError(f"{type(self).__name__}: step() comes before reset(), which begins an episode; call that first.")
        moves = np.zeros(len(self._low))
        moves[self._free] = np.clip(given, -1.0, 1.0)
        for name, reach in self.targets.items():
            own = self._part[name]
            low, high = self._low[own], self._high[own]
            if reach.rate is None:
                value = low + 0.5 * (1.0 + moves[own]) * (high - low)
            else:
                value = np.clip(self._values[own] + self.period * reach.rate * moves[own], low, high)
            self._values[own] = value
            sim.set(name, self._given(reach, value), over=self.period)
        failed, converged = "", True
        try:
            for _ in range(self._steps):
                converged &= sim.step().converged
        except StepFailedError as error:
            failed = str(error)
        begun = sim.state.step > 0  # nothing can be read where the first step of all failed
        done = begun and bool(self.success(sim))
        reward = self.reward(sim) if begun else 0.0
        if not isinstance(reward, Real) or not (np.isfinite(reward) or failed):
            raise InputError(f"{type(self).__name__}: reward() returned {shown(reward)}; allowed is a finite number.")
        info = self._told() | {"converged": converged, "success": done, "failed": failed}
        over = sim.time >= self.horizon - 0.5 * self.sim.dt
        return self._seen(), float(reward), done or bool(failed), over, info

    def render(self) -> NoReturn:
        """Say how to see an episode: environments draw nothing."""
        raise InputError(f"{type(self).__name__}: it draws nothing; {_TO_SEE}.")

    def close(self) -> None:
        """Let go of the simulation."""
        self.sim.close()
        self._begun = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Make a twin that stands where this one does and goes its own way, as planners ask for: by a fork of the simulation."""
        twin = object.__new__(type(self))
        memo[id(self)], memo[id(self.sim)] = twin, self.sim.fork()
        twin.__dict__.update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        return twin

    def __copy__(self) -> Self:
        """Make a twin with a simulation of its own; one that shared it would move this one, too."""
        return copy.deepcopy(self)

    def _options_of(self, build: Callable[..., Scene], options: object) -> dict[str, Any]:
        """Check the options of an episode."""
        what = type(self).__name__
        if options is None:
            return {}
        if not isinstance(options, Mapping):
            raise InputError(f"{what}: options is {shown(options)}; give a dict, of what build() takes beside rng.")
        taken = list(inspect.signature(build).parameters.values())[1:]
        if not any(one.kind is one.VAR_KEYWORD for one in taken):
            known = [one.name for one in taken if one.kind is not one.VAR_POSITIONAL]
            for name in options:
                if name not in known:
                    raise InputError(
                        f"{what}: reset() has no option {name!r}, as build() has no parameter of that name"
                        f"{did_you_mean(str(name), known)}"
                    )
        return dict(options)

    def _seen(self) -> np.ndarray:
        """Observation as a vector of its own."""
        observed, what = self.observe(self.sim), f"{type(self).__name__}: observe() returned"
        try:
            seen = np.array(observed).ravel()
        except ValueError:  # parts of different lengths
            seen = np.array([None])
        if not len(seen) or seen.dtype.kind not in "biuf":
            raise InputError(f"{what} {shown(observed)}; allowed are numbers, e.g. a list of them.")
        if len(seen) != (self._size or len(seen)):
            raise InputError(f"{what} {len(seen)} numbers, but {self._size} at first; return as many each time.")
        return seen.astype(np.float64)

    def _told(self) -> dict[str, Any]:
        return {"time": self.sim.time, "verdict": self.sim.verdict}
