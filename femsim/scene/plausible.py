"""Values of the wrong order: a note with the value in words. Nothing is refused here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import numpy as np

from materials import Elastic

#: What is taken as it is, without a note: Pa, kg/m^3, s, m, rad, m/s^2, m/s and 1.
MODULI = (100.0, 1e13)
DENSITIES = (10.0, 3e4)
#: Units of densities that are smaller than these, kg/m^3, and what one of them is, kg/m^3.
UNITS = ((1e-7, "t/mm^3", 1e12), (1e-4, "kg/mm^3", 1e9), (math.inf, "g/cm^3", 1e3))
#: What damps by stiffness stops swings at 1 Hz several times over above this time, s.
MOST_BETA = 1.0
#: The same of a density that a mass makes, kg/m^3: small bodies that stand for heavier ones are ten times as dense as metals.
DENSEST_BY_MASS = 3e5
#: Larger bodies, m^3, are not weighed in grams.
IN_GRAMS = 1e-3
STEPS = (1e-7, 0.1)
MOVING_SIZES = (1e-6, 3.0)
MOST_TURN = 2.0 * math.pi + 1e-6
MOST_GRAVITY, MOST_SPEED = 50.0, 1e3
MOST_FRICTION = 10.0
#: The same of what a motion leads between two key frames, m/s.
MOST_LED = 10.0
#: A run may end so much before or after its duration, relative, without a note: what six digits do not show.
SAME_END = 1e-5
#: A body whose largest extent is less than so many times the margin of contact is noted, and the part of it that suits as margin
#: (measured: of bodies that collide, roll or slide energies differ by 0.02 to 1 % at a twentieth, by 4 to 30 % at a third).
LEAST_EXTENT, WANTED_MARGIN = 4.0, 0.05
#: A rod is at least so many times as long as its radius.
STOUT = 2.0
#: Linear elements of a larger Poisson's ratio are noted.
MOST_POISSON = 0.45
#: A spring that swings by so many radians a step and keeps more than this part of its energy from step to step is noted.
FASTEST_SPRING, KEPT_BY_SPRING = math.pi, 0.8
#: How far from the start of its body a motion may begin, m or rad: rounding.
_BESIDE = 1e-6
#: How far the speed of a joint and that of its motion may differ at the start, relative.
_ROUGHLY = 1e-2
#: A motion of a joint jumps where it is so many times as fast as between the key values around, this many each side, and goes
#: farther than this.
_TIMES_FASTER, _AROUND, _LEAST_WAY = 10.0, 4, {"rad": 0.02, "m": 1e-3}
#: How much faster a joint may go than it can before that is noted: rounding.
_SLACK = 1.0 + 1e-6


def notes_on_material(name: str, elastic: Elastic) -> list[str]:
    """Note a modulus, damping or density of the wrong order."""
    out, modulus = [], float(elastic.young_modulus)
    if not MODULI[0] <= modulus <= MODULI[1]:
        what = "softer than any gel (1000 Pa; rubber has 1e6)" if modulus < MODULI[0] else "stiffer than diamond (1e12 Pa)"
        out.append(f"young_modulus of {name} is {modulus:g} Pa, {what}: is it in MPa or GPa? Write it in Pa")
    beta = float(elastic.rayleigh_beta)
    if beta > MOST_BETA:
        out.append(
            f"rayleigh_beta of {name} is {beta:g} s; it damps swings at 1 Hz {math.pi * beta:.2g} times as much as stops them: "
            f"is it in milliseconds? Then it is {1e-3 * beta:g} s"
        )
    return out + notes_on_density(name, float(elastic.density))


def notes_on_elements(name: str, element: str, poisson_ratio: float) -> list[str]:
    """Note linear elements of a rubber that they make too stiff."""
    if element != "linear" or poisson_ratio <= MOST_POISSON:
        return []
    return [
        f"poisson_ratio of {name} is {poisson_ratio:g}, and its linear elements lock near 0.5: bent, twisted or glued "
        "between plates it is too stiff, maybe by half or more; give it element='quadratic'"
    ]


def notes_on_regions(name: str, regions: Mapping[str, np.ndarray], elements: int) -> list[str]:
    """Note a mesh that its regions, ndarrays of elements, divide: nobody has said what they are made of."""
    whole = [region for region, of in regions.items() if len(of) == elements]
    covered = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *regions.values()]))
    if whole or len(covered) < elements:
        return []
    names = list(regions)
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return [
        f"the mesh of {name} has {len(names)} regions ({shown}), which all get its one material; give others by "
        f"regions={{{names[0]!r}: material}}, or a rigid body for a stiff part, welded to it by join"
    ]


def notes_on_density(name: str, density: float) -> list[str]:
    """Note a density, kg/m^3, of the wrong order."""
    if DENSITIES[0] <= density <= DENSITIES[1]:
        return []
    what = f"{density / 1000.0:.0f} times that of water"
    if density < DENSITIES[0]:
        unit, one = next((unit, one) for most, unit, one in UNITS if density < most)
        what = f"{1000.0 / density:.3g} times less than that of water: is it in {unit}? Then it is {one * density:g} kg/m^3"
    return [f"density of {name} is {density:g} kg/m^3, {what}"]


def notes_on_mass(name: str, mass: float, volume: float) -> list[str]:
    """Note a mass, kg, that is too large for its volume, m^3; bodies may be hollow, and as light as they are."""
    density = mass / volume
    if density <= DENSEST_BY_MASS or volume > IN_GRAMS:
        return []
    return [
        f"mass of {name} is {mass:g} kg in {1e6 * volume:.3g} cm^3, {density / 1000.0:.3g} times the density of water: is it in "
        f"grams? Then it is {mass / 1000.0:g} kg"
    ]


def notes_on_friction(what: str, *coefficients: float) -> list[str]:
    """Note coefficients of friction of which one is such as no dry pair has."""
    if max(coefficients) <= MOST_FRICTION:
        return []
    given, parts = (" and ".join(f"{one / of:g}" for one in coefficients) for of in (1.0, 100.0))
    return [f"{what} is {given}, and that of soft rubber hardly 2: is it in percent? Then it is {parts}"]


def notes_on_limits(what: str, limits: tuple[float, float]) -> list[str]:
    """Note limits of a hinge, rad, that are beyond a turn and look like degrees: multiples of five, at most 360."""
    ends = [abs(limit) for limit in limits if math.isfinite(limit)]
    if not MOST_TURN < max(ends, default=0.0) <= 360.0 or any(end % 5.0 for end in ends):
        return []
    low, high = (math.radians(limit) for limit in limits)
    return [
        f"limits of {what} are {limits[0]:g} and {limits[1]:g} rad: are these degrees? Then they are {low:.4g} and {high:.4g} rad"
    ]


def notes_on_turn(what: str, vector: np.ndarray) -> list[str]:
    """Note a rotation vector, (3,) rad, of more than a turn."""
    turn = float(np.linalg.norm(vector))
    if turn <= MOST_TURN:
        return []
    return [
        f"{what} is {turn:g} rad, {turn / (2.0 * math.pi):.3g} turns: are these degrees? {turn:g} degrees are "
        f"{math.radians(turn):.4g} rad"
    ]


def notes_on_motion_turn(name: str, turns: np.ndarray) -> list[str]:
    """Note key frames of a motion, (n, 3) rad, that turn by more than a turn and look like degrees: whole or half numbers."""
    largest = turns[np.linalg.norm(turns, axis=1).argmax()]
    return notes_on_turn(f"rotation of the motion of {name}", largest) if (np.abs(2.0 * turns) % 1.0 == 0.0).all() else []


def notes_on_added_mass(name: str, mass: np.ndarray) -> list[str]:
    """Note mass on the nodes of a body, (n,) kg, that is none."""
    return [] if mass.any() else [f"added_mass of {name} is zero at all of its {len(mass)} nodes: check its condition"]


def notes_on_size(name: str, extent: float, largest: float) -> list[str]:
    """Note a body whose largest extent, m, is above the largest that the scene expects, or that of a cell."""
    if MOVING_SIZES[0] <= extent <= largest:
        return []
    if extent > largest:
        return [
            f"{name} measures {extent:.3g} m: is it given in millimetres? Then divide by 1000; else give the scene "
            f"largest_size={math.ceil(extent)}"
        ]
    return [f"{name} measures {1e6 * extent:.3g} micrometres: is it given in kilometres, or scaled twice?"]


def notes_on_margin(name: str, extent: float, margin: float) -> list[str]:
    """Note a body that is hardly larger, m, than the margin of contact, m: contacts are then placed too far ahead."""
    if extent >= LEAST_EXTENT * margin or extent < MOVING_SIZES[0]:
        return []
    return [
        f"{name} measures {1e3 * extent:.3g} mm, and the margin of contact is {1e3 * margin:.3g} mm: what is so small rolls, "
        f"hits and bounces less exactly; give the scene margin={WANTED_MARGIN * extent:.1g}"
    ]


def notes_on_mesh(name: str, points: np.ndarray, largest: float) -> list[str]:
    """Note a mesh, points (n, 3) m, that is larger than the largest body that the scene expects, as in millimetres."""
    extent = float(np.ptp(points, axis=0).max())
    if extent <= largest:
        return []
    return [
        f"{name} is {extent:.4g} m long: if its mesh is in millimetres, give scale=1e-3 (scenes with the parameter mesh_unit: "
        f"--set mesh_unit=mm); else give the scene largest_size={math.ceil(extent)}"
    ]


def notes_on_rod(name: str, radius: float, points: np.ndarray, largest: float) -> list[str]:
    """Note a rod through points (n, 3) that is not slender at all, or reaches beyond the largest that the scene expects; m."""
    length, extent = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum()), float(np.ptp(points, axis=0).max())
    out = []
    if length < STOUT * radius:
        out.append(f"rod {name} is {length:.3g} m long and has a radius of {radius:.3g} m: is the radius in millimetres?")
    if extent > largest:
        out.append(
            f"rod {name} reaches over {extent:.4g} m: are its points in millimetres? Then divide them by 1000, as all lengths; "
            f"else give the scene largest_size={math.ceil(extent)}"
        )
    return out


def notes_on_settings(dt: float, gravity: np.ndarray) -> list[str]:
    """Note a time step, s, and a gravity, (3,) m/s^2, of the wrong order."""
    out, pull = [], float(np.linalg.norm(gravity))
    if dt > STEPS[1]:
        out.append(
            f"the time step is {dt:g} s: a body falls {0.5 * pull * dt * dt:.3g} m in the first one; contact wants 0.01 s or so"
        )
    if dt < STEPS[0]:
        out.append(f"the time step is {dt:g} s: {1.0 / dt:.3g} of them make a second")
    if pull > MOST_GRAVITY:
        out.append(f"gravity is {pull:g} m/s^2, {pull / 9.81:.3g} times that of the earth: is it in mm/s^2?")
    return out


def notes_on_duration(duration: float, dt: float, n_steps: int) -> list[str]:
    """Note a duration, s, that is no whole number of time steps, s: the run ends at the nearest one."""
    end = n_steps * dt
    if abs(end - duration) <= SAME_END * duration:
        return []
    many = f"{n_steps} steps" if n_steps > 1 else "1 step"
    return [f"the duration of {duration:g} s is no whole number of steps of {dt:g} s: the run ends at {end:g} s, after {many}"]


def notes_on_spring(
    what: str, stiffness: np.ndarray, damping: np.ndarray, mass: np.ndarray, dt: float, theta: float
) -> list[str]:
    """Note a spring that swings faster than steps of dt, s, can follow, and hardly calms in them: its force turns round.

    Stiffness, damping and mass or moment are (6,) each, along and about x, y, z. Steps whose forces act half-way leave
    (1 - 2 c + w^2 dt^2 / 4) / (1 + 2 c + w^2 dt^2 / 4) of the energy of a free swing, c being dt d / (4 m); those of backward
    Euler, theta = 1, nearly nothing.
    """
    if theta == 1.0:
        return []
    half, c = 0.25 * dt * dt * stiffness / mass, 0.25 * dt * damping / mass
    kept = (1.0 - 2.0 * c + half) / (1.0 + 2.0 * c + half)
    fast = (4.0 * half > FASTEST_SPRING**2) & (kept > KEPT_BY_SPRING)
    if not fast.any():
        return []
    swing = math.pi * dt / math.sqrt(float(half[fast].max()))
    return [
        f"{what}: its spring swings in {1e3 * swing:.2g} ms and hardly calms in steps of {1e3 * dt:g} ms, so its force may turn "
        "round from step to step where the motion is not even; take less stiffness, or none, to follow the motion exactly"
    ]


def notes_on_speed(name: str, velocity: np.ndarray) -> list[str]:
    """Note a speed at the start, (3,) m/s, far beyond that of sound."""
    speed = float(np.linalg.norm(velocity))
    return [f"{name} starts with {speed:g} m/s: is it in mm/s?"] if speed > MOST_SPEED else []


def notes_on_travel(name: str, travel: float, largest: float) -> list[str]:
    """Note a motion that goes farther, m, than the largest body that the scene expects."""
    if travel <= largest:
        return []
    return [
        f"the motion of {name} goes {travel:.3g} m: is it given in millimetres? Then divide by 1000; else give the scene "
        f"largest_size={math.ceil(travel)}"
    ]


def notes_on_joint_speed(joint: str, unit: str, speed: float, time: float, most: float, words: str) -> list[str]:
    """Note a joint that a motion drives faster than its robot says that it can go; ``words`` stand behind the most of it."""
    if speed <= most * _SLACK:
        return []
    return [
        f"joint {joint} is driven at {speed:.4g} {unit}/s at {time:.4g} s, but its most is {most:.4g} {unit}/s{words}; let its "
        "motion take longer"
    ]


def notes_on_joint_jump(joint: str, unit: str, times: np.ndarray, values: np.ndarray, dt: float) -> list[str]:
    """Note a joint that key values, (n,) s and rad or m, lead so far within a time step, s, that it is rather a jump.

    It is as in a path: far faster than between the key values around it, and farther than any log is rough.
    """
    way, spans = np.abs(np.diff(values)), np.diff(times)
    speeds = np.pad(way / spans, _AROUND)
    beside = [speeds[s : s + len(way)] for s in range(2 * _AROUND + 1) if s != _AROUND]
    least = _LEAST_WAY[unit]
    found = np.flatnonzero((way > _TIMES_FASTER * np.max(beside, axis=0) * spans) & (way > least) & (spans <= dt * _SLACK))
    if not len(found):
        return []
    k = int(found[0])
    return [
        f"the motion that joint {joint} follows exactly goes {way[k]:.4g} {unit} from {times[k]:.6g} to {times[k + 1]:.6g} s, "
        f"within a time step of {dt:g} s: is it a jump? Forces on the way there are those of the step; give it more time, or a "
        "stiffness"
    ]


def notes_on_joint_start(joint: str, unit: str, speed: float, rate: float) -> list[str]:
    """Note a joint that is given another speed at the start than the motion has which it follows exactly."""
    if abs(speed - rate) <= _ROUGHLY * max(abs(speed), abs(rate)):
        return []
    return [
        f"joint {joint} starts at {speed:.4g} {unit}/s, and the motion that it follows exactly at {rate:.2f}: its motor takes "
        "the difference in the first step"
    ]


def notes_on_joint_velocity(joint: str, unit: str, speed: float, most: float, words: str) -> list[str]:
    """Note a joint whose servo is to follow a speed that its robot says is beyond it."""
    if abs(speed) <= most * _SLACK:
        return []
    return [f"joint {joint} is to go at {speed:.4g} {unit}/s, but its most is {most:.4g} {unit}/s{words}; give it less velocity"]


def notes_on_jump(name: str, speed: float, start: float, end: float) -> list[str]:
    """Note a motion that goes so fast, m/s, between key frames at two times, s, that it is rather a jump."""
    if speed <= MOST_LED:
        return []
    return [
        f"the motion of {name} goes {1e3 * speed * (end - start):.3g} mm from {start:g} to {end:g} s, at {speed:.3g} m/s: is it "
        "a jump? The energy that it passes hides what smaller faults create; give it more time"
    ]


def notes_on_start(name: str, moved: np.ndarray, turned: np.ndarray) -> list[str]:
    """Note a motion that begins beside the start of its body, by a displacement, m, and a rotation vector, rad, (3,) each."""
    way, turn = float(np.linalg.norm(moved)), float(np.linalg.norm(turned))
    if max(way, turn) <= _BESIDE:
        return []
    return [
        f"the motion of {name} begins {1e3 * way:.3g} mm and {np.degrees(turn):.3g} degrees from where the body starts, and "
        "takes it there in the first step; let it begin at zero, or start the body there"
    ]


def without_digits(note: str) -> str:
    """Return what notes on like things have in common."""
    return re.sub(r"[0-9]", "", note)


def grouped(notes: Iterable[str]) -> list[str]:
    """Return the first of the notes that differ in their digits only, as those on the bricks of a wall, with their count."""
    alike: dict[str, list[str]] = {}
    for note in notes:
        alike.setdefault(without_digits(note), []).append(note)
    return [first if not others else f"{first} (and {len(others)} more like this)" for first, *others in alike.values()]
