"""What a scene holds: settings, bodies and their parts, what drives and joins them, sensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args

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
from femsim.scene.checks import LONGEST_STEP, Vector, positive, vector
from femsim.scene.frictions import FrictionRule, IgnoredContact, PairFriction, pair_friction
from femsim.scene.health_bounds import HealthBounds
from femsim.scene.sensor_kinds import SENSOR_KINDS, SensorSpec
from materials import FrictionTable

#: How a step is taken in time.
Integrator = Literal["theta", "energy-momentum"]
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
        self.integrator, self.theta = _scheme(integrator, theta, nonlinear_tolerance)
        self.strain_damping = _share("strain_damping", strain_damping, " (none)")
        self.correction = _share("correction", correction)
        if not isinstance(health, HealthBounds | None):
            raise InputError(f"health is {health!r}; give fs.HealthBounds(...), or leave it out.")
        self.name = name
        self.health = health or HealthBounds()
        self.thin_shapes = bool(thin_shapes)
        self.nonlinear_tolerance = (
            None if nonlinear_tolerance is None else positive("nonlinear_tolerance", nonlinear_tolerance, "1")
        )
        self.max_solves = _whole("max_solves", max_solves)
        self.most_per_pair = _whole("most_per_pair", most_per_pair)
        self.dt_bounds = _bounds(dt_bounds)
        #: whether the length of steps is chosen as the motion needs; dt is then the longest
        self.adaptive = dt == "auto"
        if isinstance(dt, str) and dt != "auto":
            raise InputError(f'dt is {dt!r}; allowed are a number of seconds and "auto".')
        self.dt = self.dt_bounds[1] if isinstance(dt, str) else positive("dt", dt, "s", LONGEST_STEP)
        self.time_tolerance = positive("time_tolerance", time_tolerance, "m")
        self.duration = positive("duration", duration, "s")
        self.gravity = vector("gravity", gravity)
        self.largest_size = positive("largest_size", largest_size, "m")
        self.margin = positive("margin", margin, "m")
        self.max_correction = positive("max_correction", max_correction, "m/s")
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
        """Couplings that sensors of their own kind read, such as tendons."""
        return [c for c in self.couplings if c.kind in SENSOR_KINDS and SENSOR_KINDS[c.kind].of_coupling]

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


def _scheme(integrator: Integrator | None, theta: float | None, nonlinear_tolerance: float | None) -> tuple[Integrator, float]:
    """How a step is taken, and its theta: what is not given follows from what is."""
    if integrator is None:
        papers = theta is not None or nonlinear_tolerance is None  # theta alone, or one linearisation a step
        integrator = "theta" if papers else "energy-momentum"
    if integrator not in get_args(Integrator):
        raise InputError(f"integrator is {integrator!r}; allowed are {', '.join(map(repr, get_args(Integrator)))}.")
    if integrator == "energy-momentum":
        if theta is not None:
            raise InputError(f"theta is {theta}; the energy-momentum step has none of its own, so leave it out, or integrator.")
        if nonlinear_tolerance is None:
            raise InputError(
                "nonlinear_tolerance is None; the energy-momentum step must be solved, so give a bound such as 1e-4."
            )
        return integrator, 0.5
    theta = 1.0 if theta is None else theta
    if not 0.5 <= theta <= 1.0:
        raise InputError(f"theta is {theta}; allowed are values from 0.5 (mid-point) to 1 (backward Euler).")
    return integrator, theta


def _share(name: str, value: float, least: str = "") -> float:
    """Check a number from 0 to 1."""
    if not 0.0 <= value <= 1.0:
        raise InputError(f"{name} is {value}; allowed are values from 0{least} to 1.")
    return value


def _whole(name: str, value: int) -> int:
    """Check a number of things, at least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} is {value!r}; allowed are whole numbers from 1.")
    return value


def _bounds(given: tuple[float, float]) -> tuple[float, float]:
    """Check the bounds of an adaptive time step, s."""
    if not isinstance(given, Sequence) or len(given) != 2:
        raise InputError(f"dt_bounds is {given!r}; give the shortest and the longest step in s, such as (1e-4, 1e-2).")
    shortest, longest = (positive("dt_bounds", one, "s") for one in given)
    if shortest > longest:
        raise InputError(f"dt_bounds are {shortest:g} and {longest:g} s; give the shortest step first, then the longest.")
    return shortest, longest
