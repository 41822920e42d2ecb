"""Watches the health of a run, step by step, by what is measured anyway; and sums up steps.csv for run.json."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from femsim.model.actuators import Chamber
from femsim.model.bodies.kinds import robot, rods
from femsim.model.compliance import CompliantDrive
from femsim.model.faces import WITH_FACES
from femsim.run.verdict import Findings, Reason, When
from femsim.scene.pairs import led_in_part
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper
from femsim.step.vitals import Depth, Vitals

#: Contact forces that are so many times as large as what carries all bodies, and stops them within a step, have run away.
_JAM = 1e6
#: Part of its iterations above which a solver is near its limit.
_NEAR_LIMIT = 0.8
#: Steps between two looks at how far bodies have gone.
_EVERY = 10
#: Parts of its width that a patch of nodes has lost which is doubtful, and wrong.
_FOLDED = (0.5, 0.8)
_SMALLER = "Take a smaller dt."
#: ... where another integrator creates no energy: backward Euler gives it to what turns while it is compressed, the mid-point
#: rule to what is stiff.
_OTHER = "Take a smaller dt, or leave theta out: the energy-momentum step creates none."
#: Time over which efforts and speeds of motors, and forces of nodes caught at an edge, are averaged, s: in one step they jump.
_MEAN_TIME = 0.05
#: Shares of steps that are judged when the run ends, by bound: what they say and what to change.
_SHARES = {
    "unconverged": ("did not converge", "Take a smaller dt, raise max_iterations or max_solves, or see the message of the run."),
    "halved": ("were taken in sub-steps", "Take a smaller dt."),
    "fallbacks": ("were not solved by the solver chosen first", "Choose the solver that answered; see answered by."),
    "limit": (f"took more than {_NEAR_LIMIT:.0%} of the iterations allowed", "Raise max_iterations, or choose another solver."),
}
#: ... of so many steps at least: that a pick fails now and then costs time, no more, and of four steps one is a quarter.
_FEWEST = {"fallbacks": 20}


class HealthWatch:
    """Judges each step of a run by the bounds of its scene.

    Parameters
    ----------
    stepper : Stepper
        The simulation, at its start.

    Attributes
    ----------
    findings : Findings
        Verdict and reasons so far.
    stop : str
        Why the run must end; empty while it may go on.
    """

    def __init__(self, stepper: Stepper) -> None:
        self._stepper, self._bounds = stepper, stepper.scene.health
        self._names = stepper.scene.part_names
        self.findings, self.stop = Findings(), ""
        system, start = stepper.system, stepper.state.energy
        #: energies in J: put in, lowest of kinetic + elastic + known losses - work, largest that passed, work at the last step,
        #: the part of it that undid penetrations, what of that undid those of steps before, which nobody put in, and the least
        #: that counts; what friction, Prony terms, joints and all else took
        self._energy = {
            "in": start, "lowest": start, "passed": start, "work": 0.0, "pushed": 0.0, "mended": 0.0,
            "least": stepper.least_energy, "start": start, "friction": 0.0, "viscous": 0.0, "joint": 0.0, "other": 0.0,
        }  # fmt: skip
        self._inverted = [0] * len(system.bodies)
        self._words = [("", "")] * len(system.bodies)
        self._crept: dict[tuple[int, int], float] = {}
        #: means of what rigid parts press on nodes, N, and of what of it pushes along the surface, by pair; and for how long, s,
        #: all of it has done that, which counts where it lasts: what touches a rim in passing drags nothing
        self._snagged: dict[tuple[int, int], tuple[float, float, float]] = {}
        #: means of effort and speed of joints that follow a motion exactly, by name, and these joints with bounds of their own
        self._means: dict[str, tuple[float, float]] = {}
        self._driven = [
            (body, rows.start, joint)
            for body, rows in ((robot(one), rows) for one, rows in zip(system.bodies, system.v_slices, strict=True))
            for joint in (body.led_joints() if body is not None else ())
            if body is not None and min(joint.max_effort, joint.max_speed) < math.inf
        ]
        self._steps, self._counts = 0, dict.fromkeys(_SHARES, 0)
        self._first = {name: When(0, 0.0) for name in _SHARES}
        self._low, self._high = self._box()

    # ------------------------------------------------------------------ a step

    def look(self, report: StepReport) -> None:
        """Take in a step."""
        when = When(report.step, report.time)
        self._feasibility(report, when)
        self._jams(report, when)
        self._locked(report, when)
        self._look_at_energy(report, when)
        self._depths(report.vitals, when)
        self._between_nodes(report.vitals.between, when)
        self._creep(report.vitals.creep, when)
        self._snags(report, when)
        self._elements(report, when)
        self._chambers(when)
        self._springs(when)
        self._patches(when)
        self._equations(report, when)
        self._moves(report, when)
        self._motors(report, when)
        self._effort(report, when)
        if report.step % _EVERY == 0:
            self._whereabouts(when)
            self._stretch(when)

    def finish(self, steps: int) -> None:
        """Judge what only the end tells: shares of the steps, and elements that stayed inverted."""
        self._judge_shares(self.findings, steps)
        self._stretch(When(steps, self._stepper.state.t))
        for k, count in enumerate(self._inverted):
            reason = self.findings.reasons.get(f"inverted {self._stepper.scene.bodies[k].name}")
            if count and reason is not None:
                reason.verdict, reason.text = "wrong", f"{reason.text}, and the run ends so"

    def so_far(self) -> Findings:
        """Return the findings with the shares of the steps until now, which still change: those of a run that ends here."""
        findings = Findings({key: replace(reason) for key, reason in self.findings.reasons.items()})
        self._judge_shares(findings, self._steps)
        return findings

    def _judge_shares(self, findings: Findings, steps: int) -> None:
        for name, (words, advice) in _SHARES.items():
            count = self._counts[name]
            findings.judge(
                name, [], count / max(steps, _FEWEST.get(name, 1)), getattr(self._bounds, name), self._first[name],
                f"{count} of {steps} steps {words}", advice,
            )  # fmt: skip

    def fail(self, step: int, time: float, message: str) -> None:
        """Take in that a step gave numbers that nothing can go on with."""
        self.findings.judge("failed", [], 1.0, (0.0, 0.0), When(step, time), f"the step failed ({message.rstrip('.')})", _SMALLER)

    def _feasibility(self, report: StepReport, when: When) -> None:
        if report.solution.status != "infeasible":
            return
        if report.contradicting:
            self.findings.judge(
                "infeasible", sorted(report.contradicting), 1.0, (0.0, 0.0), when,
                f"{_listed(report.contradicting)} cannot hold: what is joined is {_led(report.leaders)}, and cannot be at both "
                "places",
                f"Nothing after this is right. {self._gently(report.contradicting).capitalize()}, or leave a joint out.",
            )  # fmt: skip
        pairs = closing_pairs(report, self._names)
        if report.contradicting and not pairs:
            return
        names = sorted({name for pair in pairs for name in pair})
        self.findings.judge(
            "infeasible", names, 1.0, (0.0, 0.0), when,
            f"the contacts between {', '.join(' and '.join(pair) for pair in pairs) or 'bodies'} cannot hold: what they press "
            "on is closed in by parts that are driven, held or fixed and do not give way",
            f"Nothing after this is right. Shorten the motion, {self._gently(names)} or by a force, or make room.",
        )  # fmt: skip

    def _jams(self, report: StepReport, when: When) -> None:
        """Judge forces that grow in a step without an answer, as where friction locks what a motion goes on to press."""
        contacts, stepper = report.contacts, self._stepper
        if report.solution.converged or not len(contacts.force):
            return
        sizes = np.sqrt((contacts.force**2).sum(axis=1))
        mass, fastest = sum(body.mass for body in stepper.system.bodies), float(np.abs(stepper.state.v).max())
        usual = mass * (float(np.linalg.norm(stepper.settings.gravity)) + fastest / stepper.settings.dt)
        names = sorted({self._names[k] for k in contacts.part[sizes > _JAM * usual].ravel()})
        if not names:
            return
        self.findings.judge(
            "jammed", names, float(sizes.max()), (0.0, 0.0), when,
            f"the contacts of {', '.join(names)} press with {sizes.max():.2g} N in a step without an answer: friction locks what "
            "a motion goes on to press, for which there may be no forces",
            f"Nothing after this is right. Shorten the motion, {self._gently(names)} or by a force, or lower the friction.",
        )  # fmt: skip

    def _locked(self, report: StepReport, when: When) -> None:
        """Judge contacts that friction locks, whose forces are one choice of many."""
        if not report.vitals.locked:
            return
        names = sorted({self._names[k] for k in report.vitals.locked})
        self.findings.judge(
            "locked", names, 1.0, (0.0, math.inf), when,
            f"friction locks the contacts of {' and '.join(names)}: larger forces hold them too, and none undoes their overlap "
            f"of {max(0.0, -float(report.contacts.gap.min(initial=0.0))):.1g} m, which was left",
            "Forces there are one choice of many. Lower the friction, or make a finger, joint or drive there compliant.",
        )  # fmt: skip

    def _look_at_energy(self, report: StepReport, when: When) -> None:
        e = self._energy
        held = report.kinetic_energy + report.elastic_energy
        e["pushed"] += report.vitals.pushed
        e["mended"] += report.vitals.mended
        work = report.work + e["pushed"] - e["mended"]
        # joints take their part after it was put in; what pushes out of an overlap went in also where a drive took it out again
        given = report.work + report.joint_loss
        gain, e["work"] = given - e["work"], given
        e["in"] += max(gain, 0.0) + max(report.vitals.pushed, 0.0)
        e["passed"] = max(e["passed"], held, e["in"], abs(report.friction_loss))
        e["friction"], e["viscous"], e["joint"] = report.friction_loss, report.viscous_loss, report.joint_loss
        # what is known to be lost must not hide what comes from nowhere
        balance = held - work + report.friction_loss + report.viscous_loss
        created = balance - e["lowest"]
        e["lowest"] = min(e["lowest"], balance)
        e["other"] = e["start"] - balance
        scale = max(e["passed"], e["least"])
        self.findings.judge(
            "energy", [], created / scale, self._bounds.energy, when,
            f"{created:.3g} J came from nowhere, {created / scale:.2g} of the largest energy that passed, {scale:.3g} J",
            self._energy_advice(created),
        )  # fmt: skip
        if held > self._bounds.energy_stop * max(e["in"], e["least"]):
            self.stop = (
                f"the energy is {held:.3g} J, more than {self._bounds.energy_stop:g} times the {e['in']:.3g} J that went in; "
                "take a smaller dt"
            )
            self.findings.judge("energy_stop", [], 1.0, (0.0, 0.0), when, self.stop, "")

    def _energy_advice(self, created: float) -> str:
        """Say what to do about energy, J, from nowhere, which may be part of what pushed apart that overlapped at the start."""
        signs, e = self._stepper.vital_signs, self._energy
        if created <= e["mended"]:
            return "Contact pushes out what the steps before let in, as past bends of faces. Take a smaller dt."
        pushed = [(depth, pair) for pair, depth in signs.at_start.items() if not (signs.led(*pair) or signs.soft(*pair))]
        if pushed and created <= e["pushed"] - e["mended"]:
            depth, pair = max(pushed)
            first, second = (self._names[k] for k in pair)
            return (
                f"Contact pushes apart what overlaps at the start, most of all {first} and {second}, by {1e3 * depth:.3g} mm: "
                "let it touch instead."
            )
        return _SMALLER if self._stepper.settings.conserving else _OTHER

    def _depths(self, vitals: Vitals, when: When) -> None:
        """Judge how deep parts are in each other where contact, or nothing, should keep them apart."""
        sizes = self._stepper.vital_signs.sizes
        for found, led in ((vitals.deepest, False), (vitals.led, True)):
            if not found.share > 0.0:
                continue
            a, b = found.parts
            led |= self._stepper.vital_signs.led(a, b)
            bounds = self._bounds.led_overlap if led else self._bounds.penetration
            if not found.share > bounds[0]:
                continue
            why, advice = self._why_deep(found, led)
            size, which = sizes.of_pair(a, b)
            self.findings.judge(
                "led_overlap" if led else "penetration", self._of(found), found.share, bounds, when,
                f"{self._names[a]} and {self._names[b]} are {1e3 * found.depth:.3g} mm in each other, {found.share:.0%} of the "
                f"{sizes.what[which]} of {self._names[which]} ({1e3 * size:.3g} mm): {why}",
                advice,
            )  # fmt: skip

    def _why_deep(self, found: Depth, led: bool) -> tuple[str, str]:
        """Why two parts are in each other, and what to do about it."""
        a, b = found.parts
        if led and (holders := self._holders(a, b)):
            return (
                f"what meets there is held by {' or '.join(holders)}, and driven or fixed on the other side, so no contact force "
                "can keep it apart, and no sensor reads one",
                f"Shorten the motion, {self._gently(self._of(found))} or by a force, which give way, or free what it meets.",
            )
        if led and self._same_body(a, b) and self._stepper.scene.bodies[self._stepper.scene.parts[a].body].gives_way:
            return (
                "all joints between them follow motions exactly, so no contact force can keep them apart",
                "Change the motions, or drive with a stiffness or by a force, which give way.",
            )
        if led and self._same_body(a, b):
            return (
                "fingers of one gripper have no contact with each other",
                "Give them something to grip, or close them less far.",
            )
        if led:
            return (
                "both are driven or fixed, so no contact force can keep them apart",
                f"Shorten the motion, or {self._gently(self._of(found))} or by a force, which give way.",
            )
        why = "contact could not keep them apart"
        if self._held_exactly(self._of(found)):
            return why, "Shorten the motion of held nodes, hold them with a stiffness, which gives way, or take a smaller dt."
        links = [self._names[k] for k in (a, b) if led_in_part(self._stepper.scene, k)]
        if links:
            why += f"; {links[0]} is led by joints that follow motions exactly, and no force moves it but along its others"
            return why, "Shorten the motion, or drive those joints with a stiffness, which gives way."
        return why, "Take a smaller dt, shorten the motion that presses them, or make the thin one thicker."

    def _between_nodes(self, between: Depth, when: When) -> None:
        """Judge how deep a thin shape is between the nodes of a soft body or rod."""
        if not between.share > self._bounds.between_nodes[0]:
            return
        sizes, (thin, soft) = self._stepper.vital_signs.sizes, (self._names[k] for k in between.parts)
        rod = sizes.what[between.parts[1]] == "thickness"
        of, size = ("radius", between.depth / between.share) if rod else ("elements", float(sizes.part[between.parts[1]]))
        self.findings.judge(
            "between_nodes", self._of(between), between.share, self._bounds.between_nodes, when,
            f"{thin} is {1e3 * between.depth:.3g} mm inside of {soft}, {between.share:.0%} of the {of} of {soft} "
            f"({1e3 * size:.3g} mm): it went between its {'links' if rod else 'surface nodes'}, where no contact is",
            f"Say scene.contact_by_faces({thin!r}) if it is made of {WITH_FACES}; else take "
            + ("links no longer than both are thick together." if rod else
               "elements there that are smaller than the shape is thick, or a thicker shape."),
        )  # fmt: skip

    def _creep(self, creep: Depth, when: When) -> None:
        """Judge how far contacts that stick have crept by now."""
        if not creep.share > 0.0:
            return
        a, b = creep.parts
        pair = (min(a, b), max(a, b))
        way = self._crept.get(pair, 0.0) + creep.share
        self._crept[pair] = way
        self.findings.judge(
            "creep", self._of(creep), way, self._bounds.creep, when,
            f"contacts of {self._names[a]} and {self._names[b]} that stick crept by up to "
            f"{1e3 * way * self._stepper.vital_signs.sizes.of_pair(a, b)[0]:.3g} mm",
            "Take a smaller tolerance, or another solver.",
        )  # fmt: skip

    def _snags(self, report: StepReport, when: When) -> None:
        """Judge how much of the force on the nodes of a soft body pushes them along its surface."""
        now = {(one.part, one.soft): (one.pressed, one.along) for one in report.vitals.snags}
        part, length = self._part_of_mean(report), _length(report)
        for pair in sorted(now.keys() | self._snagged.keys()):
            pressed, along, lasts = self._snagged.get(pair, (0.0, 0.0, 0.0))
            presses, drags = now.get(pair, (0.0, 0.0))
            lasts = lasts + length if drags >= presses > 0.0 else 0.0
            drags = drags if drags < presses or lasts >= _MEAN_TIME else 0.0
            pressed, along = pressed + part * (presses - pressed), along + part * (drags - along)
            self._snagged[pair] = pressed, along, lasts
            share = along / pressed if pressed > 0.0 else 0.0
            if not (pair in now and share > self._bounds.snagged[0]):
                continue
            rigid, soft = (self._names[k] for k in pair)
            self.findings.judge(
                "snagged", [rigid, soft], share, self._bounds.snagged, when,
                f"{share:.0%} of the force of {rigid} on {soft} pushes nodes of {soft} along its surface: an edge went between "
                "them, and the next ones are caught at a side, so its resistance to sliding and turning is far too large",
                f"Say scene.contact_by_faces({rigid!r}) if it is made of {WITH_FACES}; else round its edges by more than it "
                "sinks in.",
            )  # fmt: skip

    def _part_of_mean(self, report: StepReport) -> float:
        """Part that a step has in a running mean."""
        return min(1.0, _length(report) / _MEAN_TIME)

    def _elements(self, report: StepReport, when: When) -> None:
        for k, inverted in enumerate(report.vitals.inverted):
            if not inverted:
                self._inverted[k] = 0
                continue
            self._inverted[k] += 1
            body, steps = self._stepper.scene.bodies[k], self._inverted[k]
            if not self._words[k][0]:
                self._words[k] = self._first_inverted(k), self._actors(k, report)
            first, actors = self._words[k]
            self.findings.judge(
                "inverted", [body.name], float(steps), self._bounds.inverted, when,
                f"{inverted} elements of {body.name} are inverted, for {steps} steps in a row (first {first}){actors}",
                "Pull, press or drive it less, take stiffer or finer elements, or a smaller dt." + self._way_to_blow_up(k),
            )  # fmt: skip

    def _chambers(self, when: When) -> None:
        for coupling in self._stepper.system.couplings:
            if coupling.kind != "chamber" or coupling.reading()[1] > 0.0:
                continue
            self.findings.judge(
                "collapsed", [coupling.name], 1.0, (0.0, 0.0), when,
                f"the walls of {coupling.name} passed through each other: its volume is {coupling.reading()[1]:.3g} m^3",
                "Give its body self_contact=True, or less suction.",
            )  # fmt: skip

    def _stretch(self, when: When) -> None:
        """Judge how far rods are stretched beside what their links bear in line."""
        system = self._stepper.system
        for rod in rods(system.bodies):
            stretch, most = rod.stretch(self._stepper.state.q[system.q_slices[system.bodies.index(rod)]])
            self.findings.judge(
                "stretch", [rod.name], stretch / most, self._bounds.stretch, when,
                f"{rod.name} is stretched by {stretch:.0%}: from {most:.0%} on its links turn aside rather than stretch, since "
                "its law is linear and shear is softer",
                "Stretch it less, or make it a soft body with a law for rubber.",
            )  # fmt: skip

    def _springs(self, when: When) -> None:
        for coupling in self._stepper.system.couplings:
            if isinstance(coupling, CompliantDrive) and coupling.flipped:
                self.findings.judge(
                    "flipped", [coupling.name], 1.0, (0.0, math.inf), when,
                    f"the motion of {coupling.name} went more than half a turn away from it, and its spring turns it the shorter "
                    "way round",
                    "Its torque changed sides. Turn it less, or give it a larger angular stiffness.",
                )  # fmt: skip

    def _patches(self, when: When) -> None:
        """Judge how far patches of nodes have folded by which joints and ends of rods hold soft bodies."""
        for coupling in (one for one in self._stepper.system.couplings if one.width < 1.0 - _FOLDED[0]):
            self.findings.judge(
                "folded", [coupling.name], 1.0 - coupling.width, _FOLDED, when,
                f"nodes of a soft body that {coupling.name} holds have folded into {coupling.width:.0%} of their width; where "
                "they are in one line, nothing says how they turn",
                "Load it less, take finer elements, or weld a rigid plate to more of its nodes and join that.",
            )  # fmt: skip

    def _equations(self, report: StepReport, when: When) -> None:
        unbalanced, lacking = self._bodies(report.unbalanced), self._bodies(report.lacking)
        self.findings.judge(
            "balance", unbalanced, report.wrench_balance, self._bounds.balance, when,
            f"forces do not balance: {''.join(unbalanced)} lacks {report.wrench_balance:.2g} of the largest force on it",
            "Take a smaller tolerance, or another solver.",
        )  # fmt: skip
        self.findings.judge(
            "residual", lacking, report.nonlinear_residual, self._bounds.residual, when,
            f"the equations of motion lack {report.nonlinear_residual:.2g} of their largest force"
            + (f", {lacking[0]} the largest part of it" if lacking else ""),
            "Take a smaller dt, or give the scene a nonlinear_tolerance.",
        )  # fmt: skip

    def _moves(self, report: StepReport, when: When) -> None:
        (far, way), (spun, turn) = report.vitals.way, report.vitals.turn
        if way > self._bounds.way[0]:
            name = self._names[far]
            self.findings.judge(
                "way", [name], way, self._bounds.way, when,
                f"{name} moves {way:.2g} of its own extent in a step, and may pass through others", _SMALLER,
            )  # fmt: skip
        if turn > self._bounds.turn[0]:
            name = self._names[spun]
            self.findings.judge(
                "turn", [name], turn, self._bounds.turn, when, f"{name} turns {turn:.2g} rad in a step", _SMALLER
            )  # fmt: skip

    def _motors(self, report: StepReport, when: When) -> None:
        """Compare joints that follow a motion exactly, whatever that takes, with what their motors can do."""
        part = self._part_of_mean(report)
        for body, first, joint in self._driven:
            label = f"{body.name}.{joint.name}"
            now = float(report.acted[body.name]["effort"][joint.row]), float(self._stepper.state.v[first + joint.row])
            means = [old + part * (abs(new) - old) for old, new in zip(self._means.get(label, (0.0, 0.0)), now, strict=True)]
            self._means[label] = means[0], means[1]
            effort, speed = means[0] / joint.max_effort, means[1] / joint.max_speed
            if not max(effort, speed) > self._bounds.motor[0]:
                continue
            turn, force = ("rad/s", "N m") if body.turns(joint.name) else ("m/s", "N")
            value, most, unit = (means[0], joint.max_effort, force) if effort > speed else (means[1], joint.max_speed, turn)
            self.findings.judge(
                "motor", [label], max(effort, speed), self._bounds.motor, when,
                f"{label} follows its motion exactly {'with' if effort > speed else 'at'} {value:.4g} {unit} (mean over "
                f"{1e3 * _MEAN_TIME:g} ms), and its motor does {most:.4g} at most",
                "Give the motion more time, let the arm carry less, or drive it with a stiffness, which gives way.",
            )  # fmt: skip

    def _effort(self, report: StepReport, when: When) -> None:
        details = report.solution.details
        self._steps += 1
        happened = {
            "unconverged": not report.solution.converged,
            "halved": report.halved,
            "fallbacks": len(details.get("tried", ())) > 1,
            "limit": details.get("effort", 0.0) > _NEAR_LIMIT,
        }
        for name, did in happened.items():
            if did:
                self._first[name] = self._first[name] if self._counts[name] else when
                self._counts[name] += 1

    def as_json(self) -> dict[str, Any]:
        """Verdict, reasons and where the energy went, J, for run.json; None for what is not finite.

        ``other_loss_J`` closes the balance with the work, off which ``joint_loss_J`` is already: what damping of the material,
        impacts and the time step itself took.
        """
        e = self._energy
        energy = {"passed_J": e["passed"], **{f"{name}_loss_J": e[name] for name in ("friction", "viscous", "joint", "other")}}
        finite = {name: value if math.isfinite(value) else None for name, value in energy.items()}
        return self.findings.as_json() | {"energy": finite}

    # ------------------------------------------------------------------ who and where

    def _same_body(self, a: int, b: int) -> bool:
        parts = self._stepper.scene.parts
        return parts[a].body == parts[b].body

    def _gently(self, names: Sequence[str]) -> str:
        """Say how to drive parts, or what joints hold, so that they give way."""
        return "drive or hold with a stiffness" if self._held_exactly(names) else "drive with a stiffness"

    def _holders(self, a: int, b: int) -> list[str]:
        """Name what holds two parts, or nodes of them, where no force moves them: fixed nodes, holds, welds that are whole."""
        scene, out = self._stepper.scene, []
        for k, other in ((a, b), (b, a)):
            body, leader = scene.parts[k].body, scene.parts[other].body
            if self._stepper.vital_signs.led(k, k):
                continue
            if body in scene.fixed_nodes:
                out.append(f"fixed= of {self._names[k]}")
            out += [
                f"hold {hold.name}"
                for hold in scene.holds
                if hold.body == body and not hold.gives_way and (hold.leader < 0 or hold.leader != leader)
            ]
            for weld in (one for one in scene.welds if k in one.parts and other not in one.parts):
                to = weld.parts[1 - weld.parts.index(k)]
                if weld.joint is not None and not weld.joint.broken and self._stepper.contacts.led(to, other):
                    out.append(f"weld {weld.joint.name}")
        return sorted(set(out))

    def _held_exactly(self, names: Sequence[str]) -> bool:
        """Whether a motion holds nodes of one of these parts, or of what one of these joints holds, exactly."""
        scene = self._stepper.scene
        bodies = {part.body for part in scene.parts if part.name in names}
        bodies |= {k for coupling in scene.couplings if coupling.name in names for k, _ in coupling.rows}
        return any(hold.body in bodies and not hold.gives_way for hold in scene.holds)

    def _bodies(self, number: int) -> list[str]:
        """Name of a body; nothing for -1."""
        return [self._stepper.scene.bodies[number].name] if number >= 0 else []

    def _of(self, found: Depth) -> list[str]:
        return sorted({self._names[k] for k in found.parts})

    def _first_inverted(self, k: int) -> str:
        """Find number and place of the element of a body that is inverted most."""
        mesh = self._stepper.scene.bodies[k].tetrahedra()
        if mesh is None:
            return "one that it does not name"
        q = self._stepper.state.q[self._stepper.system.q_slices[k]].reshape(-1, 3)
        corner, rest = q[mesh.tets], mesh.rest[mesh.tets]
        ratio = np.linalg.det(corner[:, 1:] - corner[:, :1]) / np.linalg.det(rest[:, 1:] - rest[:, :1])
        worst = int(np.argmin(ratio))
        if not ratio[worst] <= 0.0:
            return f"element {worst} or one beside it, by a part of it only"
        place = ", ".join(f"{1e3 * x:.3g}" for x in rest[worst].mean(axis=0))
        return f"element {worst}, at {place} mm where it started"

    def _actors(self, k: int, report: StepReport) -> str:
        """Say what acts inside a body, and how strongly in this step."""
        said = []
        units = {"force": "N", "pressure": "Pa"}
        for coupling in self._stepper.scene.couplings:
            if all(number != k for number, _ in coupling.rows):
                continue
            acted = report.acted.get(coupling.name, {})
            for name, unit in units.items():
                if name in acted and np.size(acted[name]) == 1:
                    said.append(f"; {coupling.kind} {coupling.name} acted with {float(np.ravel(acted[name])[0]):.3g} {unit} then")
        return "".join(said)

    def _way_to_blow_up(self, k: int) -> str:
        """Say how a body is blown up that has a chamber with a given pressure; empty for others."""
        chambers = (c for c in self._stepper.scene.couplings if isinstance(c, Chamber) and not c.pumped)
        if not any(number == k for chamber in chambers for number, _ in chamber.rows):
            return ""
        return " Beyond its largest pressure a balloon grows without end: give its chamber a volume instead."

    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners, (3,) each, m, of a box around all that is not endless at the start."""
        placed = self._stepper.placed
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for k, part in enumerate(self._stepper.scene.parts):
            ends = [(t, shape.bounding_radius) for shape, _, t in part.shapes if math.isfinite(shape.bounding_radius)]
            points = [placed.translation[k] + placed.rotation[k] @ t for t, _ in ends]
            reach = max((radius for _, radius in ends), default=0.0)
            if len(part.nodes):
                body = self._stepper.scene.bodies[part.body]
                points = list(body.contact_points(self._stepper.state.q[self._stepper.system.q_slices[part.body]], part.nodes))
            if points:
                low, high = np.minimum(low, np.min(points, axis=0) - reach), np.maximum(high, np.max(points, axis=0) + reach)
        return low, high

    def _whereabouts(self, when: When) -> None:
        """End the run where a body has left the scene."""
        size = float(np.linalg.norm(self._high - self._low))
        if not math.isfinite(size):
            return
        for body, q in zip(self._stepper.system.bodies, self._stepper.system.q_slices, strict=True):
            centre = body.centre_of_mass(self._stepper.state.q[q])
            away = float(np.linalg.norm(np.maximum(np.maximum(self._low - centre, centre - self._high), 0.0)))
            if away > self._bounds.left_stop * size:
                self.stop = (
                    f"{body.name} has left the scene: it is {away:.3g} m away, more than {self._bounds.left_stop:g} times the "
                    f"{size:.3g} m that the scene measures; give it a floor, or a smaller dt if it was thrown out"
                )
                self.findings.judge("left_stop", [body.name], 1.0, (0.0, 0.0), when, self.stop, "")

    # ------------------------------------------------------------------ to go on later

    def memory(self) -> dict[str, Any]:
        """All that the next step changes, as JSON holds it: for a run that goes on in another process."""
        return {
            "reasons": {key: asdict(reason) for key, reason in self.findings.reasons.items()},
            "energy": dict(self._energy),
            "inverted": list(self._inverted),
            "words": [list(pair) for pair in self._words],
            "crept": [[a, b, way] for (a, b), way in self._crept.items()],
            "means": {label: list(pair) for label, pair in self._means.items()},
            "snagged": [[*pair, *kept] for pair, kept in self._snagged.items()],
            "steps": self._steps,
            "counts": dict(self._counts),
            "first": {name: [when.step, when.time] for name, when in self._first.items()},
            "box": [self._low.tolist(), self._high.tolist()],
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what :meth:`memory` gave."""
        self.stop = ""
        self.findings = Findings({key: Reason(**fields) for key, fields in memory["reasons"].items()})
        self._energy |= memory["energy"]
        self._inverted = list(memory["inverted"])
        self._words = [(first, actors) for first, actors in memory["words"]]
        self._crept = {(int(a), int(b)): float(way) for a, b, way in memory["crept"]}
        self._means = {label: (float(effort), float(speed)) for label, (effort, speed) in memory["means"].items()}
        # those of earlier checkpoints say nothing of how long
        self._snagged = {(int(a), int(b)): (means[0], means[1], sum(means[2:])) for a, b, *means in memory.get("snagged", [])}
        self._steps = int(memory["steps"])
        self._counts = dict(memory["counts"])
        self._first = {name: When(int(step), float(time)) for name, (step, time) in memory["first"].items()}
        self._low, self._high = (np.array(corner) for corner in memory["box"])


def _listed(joints: Sequence[str]) -> str:
    """Joints as the subject of a sentence."""
    return f"the joint {joints[0]}" if len(joints) == 1 else f"the joints {', '.join(joints)}"


def _led(leaders: Sequence[str]) -> str:
    """Say what leads what is joined."""
    if not leaders:
        return "joined elsewhere too"
    return f"led by {' and '.join(leaders)}" + (" but joined elsewhere too" if len(leaders) == 1 else "")


def _length(report: StepReport) -> float:
    """Length of a step, s."""
    return sum(length for length, _ in report.parts)


def closing_pairs(report: StepReport, parts: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of parts whose contacts close without a way out; of a halved step those of its last part."""
    sides, which = report.contacts.part, report.solution.details.get("closing_contacts", ())
    found = {tuple(sorted((parts[sides[m, 0]], parts[sides[m, 1]]))) for m in which if m < len(sides)}
    return sorted((first, second) for first, second in found)


def health(steps: dict[str, np.ndarray]) -> dict[str, Any]:
    """Sum up steps.csv for run.json; empty without steps."""
    if not len(steps["step"]):
        return {}
    worst = (
        "dynamics_residual",
        "contact_residual",
        "nonlinear_residual",
        "wrench_balance",
        "max_penetration_m",
        "max_slip_mps",
        "inverted_elements",
    )
    return {
        "steps": len(steps["step"]),
        "unconverged_steps": int(len(steps["step"]) - steps["converged"].sum()),
        "halved_steps": int((steps["substeps"] > 1).sum()),
        "most_substeps": int(steps["substeps"].max()),
        "mean_iterations": float(steps["iterations"].mean()),
        "mean_solves": float(steps["solves"].mean()),
        "mean_ms_step": float(steps["ms_step"].mean()),
        **{f"largest_{name}": float(steps[name].max()) for name in worst},
    }
