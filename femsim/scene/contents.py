"""What a scene holds: settings, bodies and their parts, what drives and joins them, sensors."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from femsim.base.errors import InputError, did_you_mean, naming_parameters
from femsim.base.notebook import card
from femsim.model.bodies.body import Body
from femsim.model.commands import Command
from femsim.model.contact_rules import NoContact, UntilBroken, Welded
from femsim.model.couplings import Coupling
from femsim.model.drives import PoseFunction
from femsim.model.holds import Hold
from femsim.model.parts import OwnPair, Part, skins_of_regions
from femsim.scene import plausible
from femsim.scene.checks import Vector, vector
from femsim.scene.frictions import FrictionRule, IgnoredContact, PairFriction, pair_friction
from femsim.scene.health_bounds import HealthBounds
from femsim.scene.sensor_kinds import SENSOR_KINDS, SensorSpec
from femsim.scene.settings import CHECKS, Integrator, health_bounds, scheme, time_step
from materials import FrictionTable

#: Names that others have for settings.
_OTHER_WORDS = {
    "friction": "default_friction", "mu": "default_friction", "timestep": "dt", "time_step": "dt", "g": "gravity",
    "end_time": "duration", "t_end": "duration",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")


class SceneContents:
    """The data of a scene; its parameters are those of :class:`femsim.scene.scene.Scene`, which has the calls that fill it."""

    @partial(naming_parameters, at_once=True)
    def __init__(
        self,
        name: str,
        *,
        dt: float | Literal["auto"] = 0.01,
        duration: float = 1.0,
        theta: float | None = None,
        gravity: Vector = (0.0, 0.0, -9.81),
        margin: float = 1e-3,
        correction: float = 0.2,
        max_correction: float = 0.5,
        default_friction: float = 0.5,
        nonlinear_tolerance: float | None = 1e-4,
        max_solves: int = 25,
        integrator: Integrator | None = None,
        strain_damping: float = 0.05,
        dt_bounds: tuple[float, float] = (1e-4, 1e-2),
        time_tolerance: float = 1e-5,
        health: HealthBounds | None = None,
        thin_shapes: bool = False,
        most_per_pair: int = 120,
        largest_size: float = plausible.MOVING_SIZES[1],
    ) -> None:
        self._integrator, self._theta = scheme(integrator, theta, nonlinear_tolerance)
        self.strain_damping = strain_damping
        self.correction = correction
        self.name = name
        self.health: HealthBounds = health_bounds(health)
        self.thin_shapes = thin_shapes
        self.nonlinear_tolerance = nonlinear_tolerance
        self.max_solves = max_solves
        self.most_per_pair = most_per_pair
        self.dt_bounds: tuple[float, float] = dt_bounds
        self._dt = time_step(dt)
        self.time_tolerance = time_tolerance
        self.duration = duration
        self.gravity: np.ndarray = vector("gravity", gravity)
        self.largest_size = largest_size
        self.margin = margin
        self.max_correction = max_correction
        self.bodies: list[Body] = []
        self.parts: list[Part] = []
        self.motions: dict[int, PoseFunction] = {}
        self.fixed_nodes: dict[int, np.ndarray] = {}
        self.sensors: list[SensorSpec] = []
        self.frictions = FrictionTable(default_friction)
        self.friction_rules: list[FrictionRule] = []
        self.restitution_rules: list[FrictionRule] = []
        self.softness_rules: list[FrictionRule] = []
        self.couplings: list[Coupling] = []
        self.holds: list[Hold] = []
        self.no_contact: list[NoContact] = []
        #: pairs of parts that have no contact because a joint holds them together
        self.joined: list[tuple[int, int]] = []
        #: and those that have some once the joint breaks
        self.until_broken: list[UntilBroken] = []
        #: what welds hold, which has none through other parts either
        self.welds: list[Welded] = []
        #: pairs of links of one robot that may have contact
        self.own_pairs: list[OwnPair] = []
        #: parts by the names of groups, and statements that there is no contact between some
        self.groups: dict[str, tuple[int, ...]] = {}
        self.ignored: list[IgnoredContact] = []
        #: every function of time that it was given, by the name under which a stepped simulation can take it over
        self.commands: dict[str, Command] = {}
        #: the stepper that moved the bodies last
        self.mover: object = None
        self.parameters: dict[str, Any] = {}
        #: what seems odd about the values given, in words
        self.notes: list[str] = plausible.notes_on_friction("default_friction", default_friction)
        #: notes on the masses of bodies, by number: said unless the body follows a motion, whatever its mass
        self.mass_notes: dict[int, list[str]] = {}
        self.meshes: dict[str, dict[str, Any]] = {}

    if not TYPE_CHECKING:  # which knows the names better

        def __setattr__(self, name: str, value: Any) -> None:
            """Set an attribute; a setting is checked as where the scene is made.

            Raises
            ------
            InputError
                A setting outside its range.
            AttributeError
                A name that is nearly that of a setting, or that others have for one, and would change nothing.
            """
            if "meshes" in vars(self) and not hasattr(self, name):  # made, and none of its own
                known = ("dt", "theta", "integrator", "default_friction", *CHECKS)
                near = difflib.get_close_matches(name, known, 1, cutoff=0.85)
                if near or name in _OTHER_WORDS:
                    meant = near[0] if near else _OTHER_WORDS[name]
                    raise AttributeError(f"a scene has no setting {name!r}; did you mean {meant!r}?")
            check = CHECKS.get(name)
            if name == "nonlinear_tolerance":
                scheme(self._integrator, None, value)
            super().__setattr__(name, value if check is None else check(value))

    @property
    def adaptive(self) -> bool:
        """Whether the length of steps is chosen as the motion needs; ``dt`` is then the longest."""
        return self._dt == "auto"

    @property
    def dt(self) -> float:
        """Time step, s; set it to "auto" or a number of seconds."""
        return self.dt_bounds[1] if isinstance(self._dt, str) else self._dt

    @dt.setter
    def dt(self, value: float | Literal["auto"]) -> None:
        self._dt = time_step(value)

    @property
    def default_friction(self) -> float:
        """Coefficient of pairs without one of their own, 1."""
        return self.frictions.default

    @default_friction.setter
    def default_friction(self, value: float) -> None:
        self.frictions.default = value
        self.notes += plausible.notes_on_friction("default_friction", value)

    @property
    def theta(self) -> float:
        """Integration parameter; who sets it chooses the theta rule."""
        return self._theta

    @theta.setter
    def theta(self, value: float) -> None:
        self._integrator, self._theta = scheme("theta", value, self.nonlinear_tolerance)

    @property
    def integrator(self) -> Integrator:
        """How a step is taken; "theta" set for another one is backward Euler, until ``theta`` says otherwise."""
        return self._integrator

    @integrator.setter
    def integrator(self, value: Integrator) -> None:
        kept = self._theta if value == self._integrator == "theta" else None
        self._integrator, self._theta = scheme(value, kept, self.nonlinear_tolerance)

    def __repr__(self) -> str:
        bodies = ", ".join(body.name for body in self.bodies) or "no body"
        return f"<Scene {self.name!r}: {bodies}; {self.duration:g} s in steps of {self.dt:g} s>"

    def __getstate__(self) -> dict[str, Any]:
        """Give copies all but the stepper that moved the bodies last, which is no part of the scene."""
        return {**self.__dict__, "mover": None}

    def _repr_html_(self) -> str:
        rows = [(body.name, body.what, f"{body.mass:.4g} kg", str(body.n_v)) for body in self.bodies]
        lines = [
            f"{self.duration:g} s in steps of {self.dt:g} s",
            f"sensors: {', '.join(f'{sensor.name} ({sensor.kind})' for sensor in self.sensors) or 'none'}",
            *(f"note: {note}" for note in self.notes),
        ]
        return card(f"Scene {self.name}", ("body", "kind", "mass", "unknowns"), rows, lines)

    def body(self, name: str) -> Body:
        """Look up a body by name.

        Raises
        ------
        InputError
            No such body.
        """
        names = [b.name for b in self.bodies]
        if name not in names:
            part = next((part for part in self.parts if part.name == name), None)
            if part is not None and part.body < 0:
                raise InputError(f"{name!r} is an obstacle, which stands still; add what shall move by add_rigid.")
            if part is not None:
                raise InputError(
                    f"{name!r} is a part of the body {names[part.body]!r}; name that, and its joints for what they move."
                )
            raise InputError(f"body {name!r} is unknown in scene {self.name!r}{did_you_mean(name, names)}")
        return self.bodies[names.index(name)]

    def command(
        self,
        name: str,
        given: Callable[[float], Any],
        what: str,
        unit: str,
        within: tuple[float, float] | None = None,
        *,
        led: bool = False,
    ) -> Command:
        """Keep a function of time under a name, by which a stepped simulation can take it over; return what is called instead.

        Raises
        ------
        InputError
            The name that the function has itself is that of another target, which would be taken over with it.
        """
        made = Command(name, given, what, unit, within, led=led)
        for other in self.commands.values():
            if other.name == name or other.given is given:
                continue
            for one, another in ((made, other), (other, made)):
                if one.label == another.name:
                    raise InputError(
                        f"{one.name}: the name {one.label!r} of its {type(one.given).__name__} is that of another target; give "
                        "it another name."
                    )
        self.commands[name] = made
        return made

    @property
    def part_names(self) -> list[str]:
        """Names of all parts, in order."""
        return [part.name for part in self.parts]

    def body_of(self, part: Part) -> Body | None:
        """Body of a part; None for an obstacle."""
        return self.bodies[part.body] if part.body >= 0 else None

    def rigid_parts(self) -> list[str]:
        """Names of obstacles and of parts of rigid bodies."""
        bodies = [self.body_of(part) for part in self.parts]
        return [part.name for part, body in zip(self.parts, bodies, strict=True) if body is None or body.rigid]

    def sensed_couplings(self) -> list[Coupling]:
        """Couplings that sensors read, such as tendons."""
        sensed = {kind for declared in SENSOR_KINDS.values() for kind in declared.couplings}
        return [c for c in self.couplings if c.kind in sensed]

    def check_name(self, name: str) -> None:
        """Refuse a name that is taken, or that cannot be the name of a file."""
        taken = [
            "contacts",
            *self.part_names,
            *(skin.name for skin in skins_of_regions(self.parts)),
            *(h.name for h in self.holds),
            *(c.name for c in self.couplings),
        ]
        if name in taken:
            raise InputError(f"body name {name!r} is taken; choose another.")
        if not _NAME.fullmatch(name):
            raise InputError(
                f"body name {name!r} is not allowed, since files are named by it; use letters, digits, '_', '-' and '.', "
                "at most 100, a letter or digit first."
            )

    def pair_friction(self) -> PairFriction:
        """Friction of all pairs of skins, see :func:`femsim.scene.frictions.pair_friction`."""
        return pair_friction(self.parts, self.friction_rules, self.frictions)
