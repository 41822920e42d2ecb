"""A simulation that is stepped from outside: set targets, step, read sensors, go back, fork."""

from __future__ import annotations

import inspect
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, NoReturn, ParamSpec, TypeVar

import numpy as np

from contact import ContactError, Remembering, Solver
from femsim.base.arguments import shown
from femsim.base.errors import InputError, did_you_mean, naming_all_parameters, naming_parameters, no_attribute
from femsim.base.threads import BlasThreads
from femsim.model.bodies.kinds import robot
from femsim.model.bodies.outputs import points_of
from femsim.run.columns import step_columns, step_row
from femsim.run.health import HealthWatch
from femsim.run.recorder import Recorder
from femsim.run.recording import Recording
from femsim.run.result import SERIES, Run, series_of
from femsim.run.saved import Saved, names_of
from femsim.run.sensors import Sensors, sensor_columns
from femsim.run.simulate import MAX_HALVINGS, Begun, Call, begin, solver_of
from femsim.run.turn import turn_of
from femsim.run.verdict import Verdict
from femsim.scene.checks import Handle, name_of, part_of, vector
from femsim.scene.described import SETTINGS
from femsim.scene.plausible import grouped, without_digits
from femsim.scene.scene import Scene
from femsim.step.adaptive import take_adaptive_step
from femsim.step.advance import take_step
from femsim.step.push import Push, pushed
from femsim.step.report import StepReport
from femsim.step.state import State
from femsim.step.stepper import Stepper

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")
#: How what a scene says is changed on the way.
_ON_THE_WAY = "change it there, make a new fs.Simulation(scene), and let that restore what save() of this one gives"
#: Names that others have for what a simulation has.
_OTHER_WORDS = {
    "t": "time", "timestep": "dt", "positions": "points", "nodes": "points", "sensors": "read", "sensor": "read", "steps": "row",
    "run": "step", "advance": "step", "load": "restore", "copy": "fork", "clone": "fork", "apply_force": "push",
}  # fmt: skip
#: Notes, without digits, that simulations of this process have said: an environment makes a new one for each episode.
_SAID: set[str] = set()


class StepFailedError(RuntimeError):
    """A step gave numbers that nothing can go on with; the simulation stands where it was before it."""


def _in_turn(
    function: Callable[Concatenate[Simulation, _Given], _Returned],
) -> Callable[Concatenate[Simulation, _Given], _Returned]:
    """Let a method wait until no other thread moves the bodies of the scene; a decorator."""

    @wraps(function)
    def alone(self: Simulation, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Returned:
        with self._engine.turn.lock:
            return function(self, *args, **kwargs)

    return alone


class _Engine:
    """What a simulation and its forks share: one stepper, its sensors and its judge. One of them is ``active`` at a time."""

    def __init__(self, scene: Scene, call: Call, begun: Begun, recorder: Recorder | None) -> None:
        self.scene, self.call, self.begun, self.stepper = scene, call, begun, begun.stepper
        self.sensors = recorder.sensors if recorder else Sensors(self.stepper)
        self.health = recorder.health if recorder else HealthWatch(self.stepper)
        self.names = names_of(scene)
        self.start = Saved(self.stepper.state, {}, {}, {}, ([], []), self.health.memory(), self.names)
        self.threads = BlasThreads(call.threads)
        self.columns = (sensor_columns(scene), step_columns())
        self.active: Simulation | None = None
        self.turn = turn_of(scene)
        #: solvers of forks that are gone; the factors that they keep are often those that the next fork needs
        self.spare: list[Solver] = []

    def solver(self, fork: Simulation, memory: Mapping[str, np.ndarray]) -> Solver:
        """Make a solver for a fork that remembers what another did; it can be used again when the fork is gone."""
        made = self.spare.pop() if self.spare else solver_of(self.call)
        if isinstance(made, Remembering):
            with self.threads.limit():  # factors are made again
                made.recall(memory)
        weakref.finalize(fork, self.spare.append, made).atexit = False
        return made


def _refuse_options_of_folder(**given: object) -> None:
    """Refuse options of a run folder, where there is none, that are not as :class:`Simulation` has them by default."""
    parameters = inspect.signature(Simulation).parameters
    for name, value in given.items():
        if not np.array_equal(value, parameters[name].default):  # type: ignore[arg-type]
            raise InputError(f"{name} is {value!r}, but nothing is written: give out too, the run folder to record into.")


def _say(notes: Sequence[str]) -> None:
    """Log notes as a run does, those that differ in their digits once in a process."""
    for note in grouped(notes):
        if without_digits(note) not in _SAID:
            _SAID.add(without_digits(note))
            logging.getLogger("femsim").warning("femsim: note: %s.", note)


@naming_all_parameters
class Simulation:
    """A scene in motion that you step yourself: for control loops, learning, and planning ahead.

    The engine is that of :func:`~femsim.run.simulate.simulate`: the same steps give the same bits. Forks share one set of bodies,
    so threads that step a simulation and its forks wait for each other; other processes run side by side.

    Parameters
    ----------
    scene : Scene
        What to simulate.
    solver, tolerance, max_iterations, dt, max_halvings, threads, solver_options
        As in :func:`~femsim.run.simulate.simulate`.
    record : bool
        Whether :meth:`close` gives a :class:`~femsim.run.result.Run` of all steps. One that records does not go back.
    out : path, optional
        Run folder to record into, as ``femsim run`` writes it.
    overwrite, fps, fields, format, precision
        Of that folder, as in :func:`~femsim.run.simulate.simulate`.

    Raises
    ------
    InputError, ContactError
        Wrong values, a folder that exists or cannot be written, an unknown solver.

    Examples
    --------
    ::

        with fs.Simulation(fs.load_scene("scenes/soft_ball_gripping.py")) as sim:
            while sim.time < 0.5:
                force = sim.step().read("left_finger").force  # N
                sim.set("grip_force", 5.0 + 0.1 * abs(force[0]))
    """

    _engine: _Engine
    _saved: Saved  # where it stood when another of its kind became active
    _solver: Solver | None
    _recording: Recording | None
    _failure, _cut, _closed = "", "", False
    _run: Run | None = None
    _report: StepReport | None = None

    @partial(naming_parameters, at_once=True)
    def __init__(
        self,
        scene: Scene,
        solver: str = "auto",
        *,
        tolerance: float | None = None,
        max_iterations: int | None = None,
        dt: float | Literal["auto"] | None = None,
        max_halvings: int = MAX_HALVINGS,
        threads: int = 1,
        solver_options: dict[str, Any] | None = None,
        record: bool = False,
        out: str | Path | None = None,
        overwrite: bool = False,
        fps: float = 100.0,
        fields: Sequence[str] | None = None,
        format: str = "pvd",
        precision: str = "float64",
    ) -> None:
        if out is None:
            _refuse_options_of_folder(overwrite=overwrite, fps=fps, fields=fields, format=format, precision=precision)
        call = Call(
            solver, tolerance, max_iterations, dt=dt, max_halvings=max_halvings, threads=threads, solver_options=solver_options,
            fps=fps, fields=fields, format=format, precision=precision, checkpoint_every=0,
        )  # fmt: skip
        begun = begin(scene, call)
        _say(begun.stepper.notes)
        with turn_of(scene).of_run(begun.stepper):
            self._recording = Recording(scene, begun, call, out, overwrite) if record or out is not None else None
        self._engine = _Engine(scene, call, begun, self._recording.recorder if self._recording else None)
        self._solver, self._saved = self._engine.stepper.solver, self._engine.start
        self._commands: dict[str, Mapping[str, np.ndarray]] = {}
        self._pushes: dict[str, Push] = {}
        self._rows: tuple[list[float], list[float]] = ([], [])
        self._engine.active = self

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """End it, see :meth:`close`; a recording that an error cuts off says so."""
        if kind is not None and not self._failure:
            self._cut = f"{kind.__name__}: {error}".rstrip(": ")
        self.close()

    @_in_turn
    def close(self) -> Run | None:
        """Complete the recording and release the scene, whose targets follow the scene again.

        Readings stay; the simulation cannot be stepped any more.

        Returns
        -------
        Run or None
            All steps, where it recorded them.
        """
        if self._engine.active is self:
            for command in self._engine.scene.commands.values():
                command.release()
            self._engine.stepper.system.pushed = None
        recording, self._recording, self._closed = self._recording, None, True
        if recording is not None:
            self._run = recording.close(self._engine.stepper, self._failure, self._cut)
        return self._run

    def __reduce_ex__(self, _: Any) -> NoReturn:
        """Refuse to be copied or pickled: bodies are shared."""
        raise InputError(
            f"the simulation of {self._engine.scene.name!r} cannot be copied or pickled; fork() makes a twin, save().write(file) "
            "keeps where it stands."
        )

    if not TYPE_CHECKING:  # which knows the names better

        def __setattr__(self, name: str, value: Any) -> None:
            """Refuse what looks like a setting and would change nothing."""
            if not name.startswith("_"):
                hint = f"; it is one of the scene: {_ON_THE_WAY}" if name in SETTINGS else ""
                if hint or isinstance(getattr(type(self), name, None), property):
                    raise AttributeError(f"{name} of a simulation cannot be set{hint or '; it is to be read'}.")
                if name in inspect.signature(type(self).__init__).parameters:
                    raise AttributeError(f"{name} of a simulation cannot be set; give it as fs.Simulation(scene, {name}=...).")
            super().__setattr__(name, value)

        def __getattr__(self, name: str) -> NoReturn:
            """Name the nearest of what a simulation has; asked for what is not there."""
            raise no_attribute(
                "a simulation", name, [known for known in dir(type(self)) if not known.startswith("_")], _OTHER_WORDS
            )

    def __repr__(self) -> str:
        return f"<Simulation of {self._engine.scene.name!r} at {self.time:g} s, step {self._state.step}>"

    # ------------------------------------------------------------------ where it stands

    @property
    def state(self) -> State:
        """All that the next step reads, to look at: its arrays are read-only; ``state.copy()`` gives others."""
        return self._state.to_look_at()

    @property
    def _state(self) -> State:
        """The same as the engine has it."""
        return self._engine.stepper.state if self._engine.active is self else self._saved.state

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self._state.t

    @property
    def dt(self) -> float:
        """Time step, s; the longest where dt is "auto"."""
        return self._engine.stepper.settings.dt

    @property
    @_in_turn
    def stepper(self) -> Stepper:
        """The engine, as ``on_step`` of :func:`~femsim.run.simulate.simulate` gets it: to read, not to write."""
        self._activate()
        return self._engine.stepper

    @property
    def report(self) -> StepReport | None:
        """What the last step of this simulation did, as ``on_step`` gets it; None before the first, and where it went back."""
        return self._report

    @property
    def converged(self) -> bool:
        """Whether the last step converged by true residuals; True before the first."""
        return not self._rows[1] or bool(self.row()["converged"])

    @property
    @_in_turn
    def verdict(self) -> Verdict:
        """What the steps so far are worth as physics: "good", "doubtful" or "wrong", as of a run that ended here."""
        self._activate()
        return self._engine.health.so_far().verdict

    @property
    @_in_turn
    def reasons(self) -> list[str]:
        """Why, one sentence each; empty when good."""
        self._activate()
        return [reason["sentence"] for reason in self._engine.health.so_far().as_json()["reasons"]]

    @property
    def notes(self) -> list[str]:
        """What is unlikely in the scene, as in ``notes`` of a run; said on stderr too, once in a process."""
        return grouped(self._engine.stepper.notes)

    @_in_turn
    def points(self, body: Handle | str) -> np.ndarray:
        """Positions of the nodes of a soft body, or of the centres of the links of a rod, (n, 3), m, world.

        Bodies and parts may be given by their names or by the handles of ``add_...``, here and in all calls.

        Raises
        ------
        InputError
            No such body, or a rigid one.
        """
        engine, name = self._engine, name_of(body)
        scene, slices = engine.scene, engine.stepper.system.q_slices
        number = next((k for k, one in enumerate(scene.bodies) if one.name == name), None)
        if number is not None and number >= len(slices):  # it came later
            engine.stepper.described.refuse_changes("points")
        points = None if number is None else points_of(scene.bodies[number].kind, self._state.q[slices[number]])
        if points is None:
            known = did_you_mean(name, [one.name for one in scene.bodies if points_of(one.kind, one.initial_q()) is not None])
            if number is None and name not in scene.part_names:
                raise InputError(f"points of {name!r}: no soft body or rod is called so{known}")
            raise InputError(
                f"points of {name!r}: it is rigid and has none; ask for its pose. Of soft bodies and rods{known[1:]}"
            )
        return points.copy()

    @_in_turn
    def pose(self, part: Handle | str, *, tool: Sequence[float] | np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rotation (3, 3), 1, and position (3,), m, of a rigid part, world: "box", "gripper.left", "arm.hand".

        Parameters
        ----------
        part : Handle or str
            The part.
        tool : sequence, (3,), m, optional
            A point of it, in the frame of a link of a robot, as :meth:`femsim.Robot.pose` has it; (0, 0, 0) is the origin of this
            frame. Of other parts from the centre of mass. Default: the position is that of the centre of mass.

        Raises
        ------
        InputError
            No such part, one of a body that deforms, or a tool of another shape.
        """
        part, rigid = part_of(part), self._engine.scene.rigid_parts()
        if part not in rigid:
            its_points = " it deforms: ask for its points;" if part in self._engine.scene.part_names else ""
            raise InputError(f"pose of {part!r}:{its_points} no rigid part is called so{did_you_mean(part, rigid)}")
        self._activate()
        number, stepper = self._engine.scene.part_names.index(part), self._engine.stepper
        if number >= len(self._engine.names["part"]):  # it came later
            stepper.described.refuse_changes("pose")
        rotation, position = (one.copy() for one in stepper.link_pose(number))
        if tool is not None:
            own, point = self._engine.scene.parts[number], vector(f"pose of {part!r}: tool", tool)
            tree = robot(stepper.system.bodies[own.body])
            if tree is not None:
                position = tree.frame_pose(stepper.state.q[stepper.system.q_slices[own.body]], own.link)[1]
            position = position + rotation @ point
        return rotation, position

    # ------------------------------------------------------------------ steps

    @_in_turn
    def step(self, n: int = 1) -> Simulation:
        """Take some time steps; return the simulation itself, so that a reading can follow.

        Raises
        ------
        InputError
            A number of steps below 1, or a simulation that was closed.
        StepFailedError
            A step gave numbers that nothing can go on with, or the one before it made energy a million times what went in, or a
            body has left the scene, where a run ends too; those before it stand, as where Ctrl-C or
            an error of a function of the scene interrupts a step.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InputError(f"step: n is {n!r}; allowed are whole numbers from 1.")
        self._open("step")
        engine = self._engine
        with engine.threads.limit():
            for _ in range(int(n)):
                engine.stepper.described.refuse_changes("step")
                with engine.turn.step():
                    self._step()
        return self

    def _step(self) -> None:
        engine, stepper, before = self._engine, self._engine.stepper, self._engine.stepper.state
        timings, halvings, lengths = dict(stepper.timings), engine.call.max_halvings, engine.begun.lengths
        stepper.system.pushed = pushed(stepper, self._pushes.values())
        number = before.step + 1
        if engine.health.stop:  # as a run does
            self._failure = f"step {number} is not taken: {engine.health.stop}."
            raise StepFailedError(f"{self._failure} Go back to a saved state, or begin again.")
        try:
            report: StepReport = (
                take_step(stepper, halvings) if lengths is None else take_adaptive_step(stepper, lengths, halvings)
            )
            message = "" if report.finite else report.solution.message
        except (ContactError, np.linalg.LinAlgError) as error:
            message = f"{error}"
        except BaseException:  # Ctrl-C, or a function of the scene: bodies may stand in the middle of the step
            stepper.restore(before)
            raise
        if message:
            stepper.restore(before)
            self._failure = f"step {number} at {before.t + stepper.settings.dt:g} s failed: {message}"
            raise StepFailedError(f"{self._failure} Go back to a saved state, or take a smaller dt.")
        self._report, self._failure = report, ""
        if self._recording is not None:
            self._rows = self._recording.step(report, timings)
            return
        row = engine.sensors.row(report)
        engine.health.look(report)
        self._rows = (row, step_row(report, stepper.ms_since(timings)))

    # ------------------------------------------------------------------ targets

    @property
    def targets(self) -> dict[str, str]:
        """What :meth:`set` takes, by name: what it is and its unit.

        A name is that of a driven body ("gripper"), a finger ("gripper.left"), a hold, a chamber, a tendon, a load ("ball.load"),
        an end of a rod ("cable.start"), or the ``name`` of a Profile or Motion, for all that it drives.
        """
        commands = self._engine.scene.commands.values()
        own = {command.name: f"{command.what}, {command.unit}" for command in commands}
        return {command.label: own[command.name] for command in commands if command.label} | own

    @_in_turn
    def set(self, target: Handle | str, value: Any, *, over: float = 0.0) -> None:
        """Command a target instead of what the scene says, from now on.

        Parameters
        ----------
        target : Handle or str
            One of :attr:`targets`.
        value : float or sequence, or None
            The new value, in SI units: a number (N, m, Pa, m^3); for a motion the displacement from the start (3,), m, alone
            or with the rotation vector (3,), rad; for a load what its function returns. None: what the scene says again.
        over : float, s
            Time to get there, at constant speed. Default 0: forces act at once, driven bodies arrive after one step
            (:attr:`dt`), whatever parts it is taken in.

        Raises
        ------
        InputError
            Unknown target, numbers of another shape or not finite, beyond the range of a joint, a negative time, or a simulation
            that was closed.
        """
        target, commands = name_of(target), self._engine.scene.commands
        chosen = [c for c in commands.values() if target in (c.name, c.label)]
        if not chosen or not target:
            if target in SETTINGS:
                raise InputError(f"{target!r} is no target but a setting of the scene: {_ON_THE_WAY}.")
            known = did_you_mean(target, self.targets)
            raise InputError(f"target {target!r} is unknown in scene {self._engine.scene.name!r}{known}")
        if not (np.isfinite(over) and over >= 0.0):
            raise InputError(f"target {target!r}: over is {over!r} s; allowed are finite numbers from 0.")
        self._open("set")
        for command in chosen if value is not None else ():
            command.target(value, self.time)  # all of them, or none
        for command in chosen:
            within = over or (self.dt if command.led else 0.0)  # a step may be taken in parts
            if value is None:
                command.release(self.time, within)
            else:
                command.take(value, self.time, within)
            self._commands[command.name] = command.memory()

    @_in_turn
    def push(
        self,
        part: Handle | str,
        force: Sequence[float] | np.ndarray | None,
        at: Sequence[float] | np.ndarray | None = None,
    ) -> None:
        """Push a part from outside the scene, from now on: a disturbance, a pull by hand.

        The point goes with the part, the force keeps its direction. Nodes or links of a body that deforms share it, within a
        tenth of its size around the point, so that it acts there. It is work of the surroundings in ``work_J``, and a new one
        takes its place.

        Parameters
        ----------
        part : Handle or str
            A rigid part ("box", "robot.tool"), a soft body or a rod.
        force : sequence, (3,), N, or None
            World; None ends it.
        at : sequence, (3,), m, optional
            Point of the part now, world; of a body that deforms the nearest one of it, of a rod that of its centre line. Default
            where it is pushed already, else its centre of mass.

        Raises
        ------
        InputError
            No such part, an obstacle, numbers of another shape or not finite, a point far outside a body that deforms, or a
            simulation that was closed.
        """
        part, names = part_of(part), self._engine.scene.part_names
        if part not in names:
            raise InputError(f"push of {part!r}: no part is called so{did_you_mean(part, names)}")
        self._open("push")
        if force is None:
            self._pushes.pop(part, None)
            return
        point = None if at is None else vector(f"push of {part!r}: at", at)
        pull = vector(f"push of {part!r}: force", force).copy()
        if point is None and part in self._pushes:
            self._pushes[part] = replace(self._pushes[part], force=pull)
        else:
            self._pushes[part] = Push.at(self._engine.stepper, names.index(part), point, pull)

    # ------------------------------------------------------------------ readings

    def read(self, sensor: Handle | str) -> Any:
        """Read a sensor after the last step.

        Returns
        -------
        SensorSeries, MarkerSeries, ChamberSeries, TendonSeries or GaugeSeries
            As in a :class:`~femsim.run.result.Run`, for one time: ``.force`` is (3,), N.

        Raises
        ------
        InputError
            Unknown sensor, or no step yet.
        """
        sensor, columns, row = name_of(sensor), self._engine.columns[0], self._rows[0]
        scene, specs = self._engine.scene, self._engine.sensors.specs
        if sensor in [s.name for s in scene.sensors[len(specs) :]]:  # it came later
            self._engine.stepper.described.refuse_changes("read")
        names = [name for s in specs for name in ([s.name, f"{s.name}_measured"] if s.reading else [s.name])]
        if sensor not in names:
            raise InputError(f"sensor {sensor!r} is unknown in scene {scene.name!r}{did_you_mean(sensor, names)}")
        if not row:
            raise InputError(f"sensor {sensor!r} has no reading before the first step; take one by step().")
        groups = series_of(specs, {name: np.array([value]) for name, value in zip(columns, row, strict=True)})
        return next(groups[group][sensor].at(0) for group in SERIES if sensor in groups[group])

    def row(self) -> dict[str, float]:
        """All columns of sensors.csv and steps.csv after the last step, by name, SI units; empty before the first."""
        if not self._rows[1]:
            return {}
        return {name: float(x) for k in (0, 1) for name, x in zip(self._engine.columns[k], self._rows[k], strict=True)}

    # ------------------------------------------------------------------ to and fro

    @_in_turn
    def save(self) -> Saved:
        """Keep where it stands, for :meth:`restore`; :meth:`Saved.write` puts it into a file."""
        if self._engine.active is not self:
            return self._saved
        solver = self._engine.stepper.solver
        memory = {name: value.copy() for name, value in solver.memory().items()} if isinstance(solver, Remembering) else {}
        pushes = {name: push.memory() for name, push in self._pushes.items()}
        engine = self._engine
        return Saved(engine.stepper.state, memory, dict(self._commands), pushes, self._rows, engine.health.memory(), engine.names)

    @_in_turn
    def restore(self, saved: Saved) -> None:
        """Go back (or on) to where a simulation of this scene stood.

        The scene may have other parameters: masses, stiffnesses, friction, gravity, dt. What is tried from one start under
        changed circumstances needs that, and nothing is said of it.

        Raises
        ------
        InputError
            It is of another scene: bodies, parts, joints, chambers, tendons and sensors have other names, another order or size.
            Or this one records or was closed.
        """
        if not isinstance(saved, Saved):
            raise InputError(f"restore: saved is {shown(saved)}; give what save() returned, or fs.Saved.read(file).")
        if self._recording is not None:
            raise InputError("a simulation that records cannot go back, since a run goes on in time; fork it, or do not record.")
        self._open("restore", stay=True)
        for kind, own in self._engine.names.items():
            there = saved.names[kind]
            if there != own:
                k = next((k for k, (a, b) in enumerate(zip(there, own, strict=False)) if a != b), min(len(there), len(own)))
                a, b = (names[k] if k < len(names) else "missing" for names in (there, own))
                raise InputError(
                    f"restore: what was saved is of another scene: its {kind} {k} is {a}, that of {self._engine.scene.name!r} is "
                    f"{b}; build the same scene, with names in the same order."
                )
        unknown = set(saved.commands) - set(self._engine.scene.commands)
        if unknown:
            raise InputError(f"what was saved has the target {sorted(unknown)[0]!r}, which this scene lacks; build the same one.")
        unknown = set(saved.pushes) - set(self._engine.scene.part_names)
        if unknown:
            raise InputError(f"what was saved pushes {sorted(unknown)[0]!r}, which this scene lacks; build the same one.")
        self._activate()
        before = self.save()
        self._recall_solver(saved)
        self._report = None
        try:
            self._put(saved)
        except InputError:
            self._recall_solver(before)
            raise

    def _recall_solver(self, saved: Saved) -> None:
        """Let the solver remember what one did that was saved; factors that it has already stay."""
        if isinstance(self._solver, Remembering):
            with self._engine.threads.limit():  # factors are made again
                self._solver.recall(saved.solver)

    def reset(self, seed: int | None = None) -> None:
        """Go back to the start of the scene; targets follow what the scene says again.

        Parameters
        ----------
        seed : int, optional
            Noise of the readings starts from this, a different one for each. Default: that of each ``Reading``.
        """
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise InputError(f"reset: seed is {seed!r}; allowed are whole numbers from 0, and None.")
        self.restore(self._engine.start)
        if seed is not None:
            self._engine.sensors.reseed(seed)

    @_in_turn
    def fork(self) -> Simulation:
        """Make a twin that stands here and goes its own way.

        Raises
        ------
        InputError
            This one was closed.
        """
        self._open("fork", stay=True)
        twin = object.__new__(type(self))
        twin._engine, twin._saved, twin._solver = self._engine, self.save(), None
        twin._commands, twin._rows, twin._recording = dict(self._commands), self._rows, None
        twin._pushes = dict(self._pushes)
        return twin

    def _open(self, call: str, *, stay: bool = False) -> None:
        """Refuse a call where it was closed; unless the bodies are to stay whose they are, let them be its own."""
        self._engine.turn.refuse_within_step(call, self._engine.scene)
        if self._closed:
            raise InputError(
                f"{call}: the simulation of {self._engine.scene.name!r} was closed at {self.time:g} s; make a new one, "
                "fs.Simulation(scene), or fork it before it is closed."
            )
        self._engine.stepper.described.refuse_changes(call)
        if not stay:
            self._activate()

    def _activate(self) -> None:
        """Let the bodies be those of this simulation, where another one, or a run of the same scene, has moved them."""
        engine = self._engine
        if engine.active is self and engine.scene.mover is engine.stepper:
            return
        if engine.active is self:  # another stepper had the bodies; what is not in them is still ours
            self._put(self.save())
            return
        if engine.active is not None:
            engine.active._saved = engine.active.save()
        engine.active = self
        if self._solver is None:
            self._solver = engine.solver(self, self._saved.solver)
        self._put(self._saved)

    def _put(self, saved: Saved) -> None:
        """Make everything that is shared what was saved."""
        engine, stepper = self._engine, self._engine.stepper
        assert self._solver is not None
        stepper.restore(saved.state)
        stepper.solver = self._solver
        engine.scene.mover = stepper
        engine.health.recall(dict(saved.health or engine.start.health))
        for name, command in engine.scene.commands.items():
            command.recall(dict(saved.commands.get(name, {})))
        self._commands, self._rows = dict(saved.commands), saved.rows
        self._pushes = {name: Push.of(memory) for name, memory in saved.pushes.items()}
