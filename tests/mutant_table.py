"""What is wrong in each mutant of `mutants.py`, and which tests must see it. Over 600 lines: one table, some lines for each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One thing wrong.

    Attributes
    ----------
    group : str
        "physics", "sensors", "energies" or "judges".
    what : str
        What is wrong then, in words.
    file : str
        File, from the root.
    old, new : str
        A text that stands in it exactly once, and what takes its place.
    tests : str
        What pytest is asked to run: files or tests under ``tests/``, apart by blanks.
    """

    group: str
    what: str
    file: str
    old: str
    new: str
    tests: str


STEP, RUN, BODIES = "femsim/step/", "femsim/run/", "femsim/model/bodies/"
#: Those that the assessment of an earlier version found alive come first in their groups.
MUTANTS = (
    # ------------------------------------------------------------------ physics
    Mutant(
        "physics", "a soft body advances by the wrong theta", BODIES + "soft.py",
        "v_new /= settings.theta", "v_new *= settings.theta",
        "test_physics.py::test_a_soft_body_falls_freely test_soft.py",
    ),
    Mutant(
        "physics", "inertia of a soft body by dt for theta dt", BODIES + "soft.py",
        "b /= implicit", "b /= settings.dt",
        "test_soft.py",
    ),
    Mutant(
        "physics", "Rayleigh alpha drives in the residual", BODIES + "soft.py",
        "out[:] = inertia + self.elastic.rayleigh_alpha *", "out[:] = inertia - self.elastic.rayleigh_alpha *",
        "test_work_of_damping.py",
    ),
    Mutant(
        "physics", "loads at the start of a step", BODIES + "soft.py",
        "self._fill_external(t + implicit, settings, external)", "self._fill_external(t, settings, external)",
        "test_soft.py",
    ),
    Mutant(
        "physics", "loads of the residual at the start of a step", BODIES + "soft.py",
        "self._fill_external(start.t + implicit, settings, external)", "self._fill_external(start.t, settings, external)",
        "test_true_step.py::test_loads_of_the_solved_step_act_at_theta_dt",
    ),
    Mutant(
        "physics", "a load pulls the other way", BODIES + "soft.py",
        "force += load if load.ndim == 2", "force -= load if load.ndim == 2",
        "test_soft.py",
    ),
    Mutant(
        "physics", "stiffness damping counts the mass twice", BODIES + "soft.py",
        "self._viscous_matrix() @ v_hat - self._mass_factor(implicit) * self._row_mass * v_hat",
        "self._viscous_matrix() @ v_hat",
        "test_true_step.py::test_the_linearised_equations_are_the_derivative_of_the_residual "
        "test_viscous.py::test_rayleigh_damping_is_that_of_the_law_alone",
    ),
    Mutant(
        "physics", "half of the pressure in a co-rotated element", BODIES + "corotational_kernels.py",
        "pressure = v * la * trace", "pressure = 0.5 * v * la * trace",
        "test_soft.py",
    ),
    Mutant(
        "physics", "a free body turns by its velocity at the start", BODIES + "rigid_kernels.py",
        "(0.5 * (L[0] + at_end[0]), 0.5 * (L[1] + at_end[1]), 0.5 * (L[2] + at_end[2]))", "L",
        "test_true_step.py::test_the_free_rotation_is_that_of_the_formula",
    ),
    Mutant(
        "physics", "drives are late by a step", STEP + "prescribed.py",
        "driven_pose(scene.bodies[index].initial_q(), motion, state.t + dt)",
        "driven_pose(scene.bodies[index].initial_q(), motion, state.t)",
        "test_held_ends.py::test_what_is_driven_ends_each_step_on_its_motion",
    ),
    Mutant(
        "physics", "what is prescribed pulls the other way", STEP + "system.py",
        "np.subtract.at(self.b, rows[self._coupling]", "np.add.at(self.b, rows[self._coupling]",
        "test_system.py",
    ),
    Mutant(
        "physics", "prescribed velocities jump backwards", STEP + "system.py",
        "v_prescribed[self._rows] - settings.theta * (self._ends", "v_prescribed[self._rows] + settings.theta * (self._ends",
        "test_system.py",
    ),
    Mutant(
        "physics", "driven bodies end a step with their mean velocity in it", STEP + "prescribed.py",
        "return end if np.abs(end - v).max() > still else v", "return v",
        "test_driven_bodies.py::test_what_lies_on_a_lift_presses_steadily",
    ),
    Mutant(
        "physics", "soft contacts undo a part of their depth", STEP + "rows_kernels.py",
        "return out if softness is None else np.where(softness > 0.0, gap / given.dt, out)", "return out",
        "test_soft_pairs.py",
    ),
    Mutant(
        "physics", "softness by the step instead of over it", STEP + "contacts.py",
        "np.outer(self.softness / dt,", "np.outer(self.softness * dt,",
        "test_soft_pairs.py",
    ),
    Mutant(
        "physics", "soft contacts end a step as hard ones", STEP + "end_velocity.py",
        "W = softened(W, soft[closed] / ((1.0 - settings.theta) * dt))", "pass",
        "test_soft_pairs.py",
    ),
    Mutant(
        "energies", "soft contacts hold no energy", STEP + "soft_pairs.py",
        "return 0.0 if rows.softness is None else", "return 0.0 if True else",
        "test_soft_pairs.py",
    ),
    Mutant(
        "judges", "depths that softness explains are errors", STEP + "soft_pairs.py",
        "gaps + gives[parts[:, 0], parts[:, 1]]", "gaps",
        "test_soft_pairs.py",
    ),
    Mutant(
        "judges", "softness explains any depth", STEP + "soft_pairs.py",
        "_MOST * np.minimum(sizes[:, None], sizes)", "np.inf",
        "test_soft_pairs.py",
    ),
    Mutant(
        "physics", "restitution pulls", STEP + "end_velocity_kernels.py",
        "q[a, 0] -= rebound[a]", "q[a, 0] += rebound[a]",
        "test_end_velocity.py::test_a_rigid_box_rebounds_by_the_restitution_of_the_pair",
    ),
    Mutant(
        "physics", "what falls rebounds as by the speed at the start of the step", STEP + "end_velocity_kernels.py",
        "pull -= data[k] * fall[indices[k]]", "pull -= 0.0 * data[k] * fall[indices[k]]",
        "test_rebounds.py::test_a_ball_thrown_at_a_ceiling_gains_nothing",
    ),
    Mutant(
        "physics", "rebounds add energy", STEP + "rebounds.py",
        "over = high > 0.0", "over = high > 1.0",
        "test_rebounds.py::test_a_tumbling_box_gains_nothing",
    ),
    Mutant(
        "physics", "what a driven body gives is from nothing", STEP + "rebounds.py",
        "gained = ended - self.begun + np.bincount(", "gained = ended - self.begun - np.bincount(",
        "test_rebounds.py::test_a_racket_gives_a_box_what_it_has_beside_it",
    ),
    Mutant(
        "physics", "a step whose end is not found counts as solved", STEP + "end_velocity.py",
        "if self.residual <= _ENOUGH or not solved.solution.converged:", "if self.residual <= 1.0:",
        "test_end_velocity.py::test_a_step_whose_end_is_not_found_has_not_converged",
    ),
    Mutant(
        "physics", "contacts of turning bases bend inwards", STEP + "point_contacts.py",
        "phi[side == k] += sign *", "phi[side == k] -= sign *",
        "test_turning_hand.py",
    ),
    Mutant(
        "physics", "torque on a gripper's base by the wrong lever", STEP + "point_rows_kernels.py",
        "+ (y * fz - z * fy)", "- (y * fz - z * fy)",
        "test_contact_rows.py",
    ),
    Mutant(
        "physics", "the stop of a joint pulls at its upper end", STEP + "joint_limits.py",
        "self.sign[end] * lam[:, 0])", "lam[:, 0])",
        "test_tree.py::test_limits_hold_and_their_torque_is_reported",
    ),
    Mutant(
        "physics", "of two links of a robot that press on each other one moves alone", STEP + "point_rows_kernels.py",
        "            if on_other:\n                value -= along",
        "            if on_other and not on_own:\n                value -= along",
        "test_own_contact.py",
    ),
    Mutant(
        "physics", "neighbours in a robot press on each other", "femsim/scene/own_contact.py",
        "if one != other and above.get(one) != other and above.get(other) != one:", "if one != other:",
        "test_own_contact.py",
    ),
    Mutant(
        "judges", "motions may drive links of a robot into each other", "femsim/step/led_pairs.py",
        "(apart | fingers | led_own_pairs(scene))", "(apart | fingers)",
        "test_own_contact.py",
    ),
    Mutant(
        "physics", "a free robot turns by the wrong angular momentum", BODIES + "rigid_kernels.py",
        "after[3 + i] -= dt * carried[i]", "after[3 + i] += dt * carried[i]",
        "test_tree.py::test_a_free_robot_keeps_its_momenta",
    ),
    Mutant(
        "physics", "a robot's motor knows no limit", BODIES + "links.py",
        "motor.stiffness, motor.damping, motor.max_effort", "motor.stiffness, motor.damping, np.inf",
        "test_robot_scenes.py::test_a_motor_gives_no_more_than_its_limit",
    ),
    Mutant(
        "physics", "a motor that follows a profile knows no limit", BODIES + "tree_joints.py",
        "motors[k].damping, motors[k].max_effort)", "motors[k].damping, np.inf)",
        "test_robot_scenes.py::test_a_motor_gives_no_more_than_its_limit",
    ),
    Mutant(
        "energies", "friction that momentum does not feel holds positions back", STEP + "end_velocity.py",
        "    return allowed if gained[weaker & (gained > 0.0)].sum() > none else None", "    return None",
        "test_end_velocity.py::test_friction_that_is_taken_back_gives_no_energy",
    ),
    Mutant(
        "physics", "forces of a step act where it ends", STEP + "stepper.py",
        "self.system.moved(state, v_hat, 0.5 * dt), v_prescribed, dt, middle=True)",
        "self.system.moved(state, v_hat, dt), v_prescribed, dt, middle=True)",
        "test_middle.py::test_bodies_that_collide_keep_their_angular_momentum",
    ),
    Mutant(
        "sensors", "the wrench of a joint forgets what contacts do behind its link", RUN + "sensors.py",
        "            out -= wrench\n", "            out -= wrench if own == self._link else 0.0\n",
        "test_robot_scenes.py::test_an_arm_lifts_a_soft_ball_and_its_joints_bear_both",
    ),
    Mutant(
        "physics", "contact pushes fingers the other way", STEP + "point_rows_kernels.py",
        "+= along + (screw[e, 3]", "-= along + (screw[e, 3]",
        "test_contact_rows.py test_gauges.py::test_joint_of_a_finger",
    ),
    Mutant(
        "physics", "contact forces of the last step are not turned", STEP + "force_memory.py",
        "np.einsum(\"mij,mj->mi\", frames[same]", "np.einsum(\"mji,mj->mi\", frames[same]",
        "test_contact_rows.py",
    ),
    Mutant(
        "physics", "the cone is too wide beyond its edge", "contact/cone.py",
        "normal = (lam_n + mu * length) / (1.0 + mu * mu)", "normal = (lam_n + mu * length) / (1.0 + mu)",
        "test_cone.py",
    ),
    Mutant(
        "physics", "friction of a statement holds for one order of the two only", "femsim/scene/frictions.py",
        "meant = np.outer(first, second) | np.outer(second, first)", "meant = np.outer(first, second)",
        "test_friction_pairs.py",
    ),
    Mutant(
        "physics", "'halving is vain' outlives halves that helped", STEP + "advance.py",
        "step=before.step + 1, halving_is_vain=False)", "step=before.step + 1, halving_is_vain=before.halving_is_vain)",
        "test_substeps.py::test_halving_is_tried_again_after_a_step_that_halves_have_saved",
    ),
    Mutant(
        "physics", "'halving is vain' outlives a step that is solved", STEP + "advance.py",
        "halving_is_vain=vain and whole.grade != SOLVED)", "halving_is_vain=vain or before.halving_is_vain)",
        "test_substeps.py::test_halving_is_tried_again_after_a_step_that_is_solved",
    ),
    Mutant(
        "physics", "a step may make energy from nothing", STEP + "stepper.py",
        "return made > GAINED * max(held, old.energy, self.least_energy)", "return False",
        "test_rod_momentum.py::test_a_whip_cracks_and_makes_no_energy",
    ),
    Mutant(
        "physics", "a solved step that makes energy is no better than one that is not solved", STEP + "advance.py",
        "grade = MADE_ENERGY if report.gained else SOLVED", "grade = NOT_CONVERGED if report.gained else SOLVED",
        "test_rod_momentum.py::test_a_solved_step_that_makes_energy_is_better_than_one_that_is_not_solved",
    ),
    Mutant(
        "physics", "a rope of threads is as stiff as a solid rod", BODIES + "rod_make.py",
        "*section.bending_factor * solid", "*solid",
        "test_rod.py::test_links_are_bricks test_cable_scenes.py::test_hanging_cable_is_a_catenary",
    ),
    Mutant(
        "physics", "factors that could not be made count as made", "contact/delassus.py",
        "        self.factorized = False  # where that fails, what was there before is gone\n", "",
        "test_delassus.py::test_after_a_factorization_that_failed_there_is_none",
    ),
    Mutant(
        "physics", "the error of a step is that without its first order", STEP + "adaptive.py",
        "dt * (first * speed + second * jerk)", "dt * second * jerk",
        "test_adaptive.py::test_backward_euler_falls_short_by_half_of_g_dt_squared",
    ),
    Mutant(
        "physics", "a small box meets soft bodies at their nodes alone", STEP + "by_faces.py",
        "if part.by_faces or (loose and not turned[other, k] and is_small(part, elements[other])):", "if part.by_faces:",
        "test_contact_by_faces.py::test_a_box_lies_between_the_nodes_of_a_soft_cube test_contact_by_faces.py::"
        "test_small_parts_have_contact_by_faces",
    ),
    Mutant(
        "physics", "what is beside a convex edge counts as inside", "contact/vertex_kernels.py",
        "return above > RISES * distance\n\n\n@njit(cache=True, inner=True)\ndef in_front_of_vertex",
        "return False\n\n\n@njit(cache=True, inner=True)\ndef in_front_of_vertex",
        "test_contact_by_faces.py::test_what_is_beside_a_rigid_box_is_not_deep_inside",
    ),
    Mutant(
        "physics", "edges of a rigid part do not press flat edges", "femsim/model/faces.py", "rigid=True", "rigid=False",
        "test_contact_by_faces.py::test_the_edge_of_a_box_presses_a_flat_surface_between_its_nodes",
    ),
    # ------------------------------------------------------------------ sensors
    Mutant(
        "sensors", "side of the force in the contact area", RUN + "sensors.py",
        "pull = (1.0 if side == 0 else -1.0) * c.force[use]", "pull = c.force[use]",
        "test_gauges.py::test_area_of_boxes_on_a_floor",
    ),
    Mutant(
        "sensors", "slip of self-contact counted twice", RUN + "sensors.py",
        "share = np.minimum(self._selection.shares(c).sum(axis=1), 1.0)", "share = self._selection.shares(c).sum(axis=1)",
        "test_gauges.py::test_slip_is_tangential_and_counts_contacts_with_oneself_once",
    ),
    Mutant(
        "sensors", "area of the other side's share", RUN + "sensors.py",
        "own = shares if k == self.part else shares[:, ::-1]", "own = shares",
        "test_gauges.py::test_area_of_boxes_on_a_floor",
    ),
    Mutant(
        "sensors", "area of nodes that do not count", RUN + "sensors.py",
        "counted[nodes] = chosen", "counted[nodes] = 1.0",
        "test_gauges.py",
    ),
    Mutant(
        "sensors", "slip of the normal velocity too", RUN + "sensors.py",
        "np.linalg.norm(c.u[:, 1:], axis=1)", "np.linalg.norm(c.u, axis=1)",
        "test_gauges.py::test_slip_is_tangential_and_counts_contacts_with_oneself_once",
    ),
    Mutant(
        "sensors", "a joint bears the weight of its finger twice", RUN + "sensors.py",
        "out[:3] -= weight", "out[:3] += weight",
        "test_gauges.py::test_joint_of_a_finger",
    ),
    Mutant(
        "sensors", "a rod turns a joint the other way", RUN + "sensors.py",
        "out[3:] -= pulled[3:] + cross(place - centre, pulled[:3])", "out[3:] -= pulled[3:] - cross(place - centre, pulled[:3])",
        "test_held_ends.py::test_the_joint_of_a_finger_bears_the_moment_of_a_rod_that_sticks_out",
    ),
    Mutant(
        "sensors", "gap to any partner", RUN + "sensors.py",
        "(part[:, side] == self.part) & self._selection.partners[part[:, 1 - side]]", "part[:, side] == self.part",
        "test_gauges.py",
    ),
    Mutant(
        "sensors", "mean over sub-steps without their lengths", RUN + "sensors.py",
        "wrenches = [dt * self._selection.wrench(c) for dt, c in report.parts]",
        "wrenches = [sum(d for d, _ in report.parts) / len(report.parts) * self._selection.wrench(c) for _, c in report.parts]",
        "test_gauges.py::test_a_sensor_of_some_contacts_is_the_mean_over_the_parts_of_a_step",
    ),
    Mutant(
        "sensors", "force of the second side without its sign", RUN + "selection.py",
        "-shares[:, 1:] * c.force", "shares[:, 1:] * c.force",
        "test_gauges.py::test_forces_on_parts_of_a_surface_and_of_partners_sum_to_the_whole",
    ),
    Mutant(
        "sensors", "torque of a selection the other way", RUN + "selection.py",
        "(moments - moments.T)", "(moments.T - moments)",
        "test_gauges.py::test_forces_on_parts_of_a_surface_and_of_partners_sum_to_the_whole",
    ),
    Mutant(
        "sensors", "torque about a point behind the sensor", RUN + "instruments.py",
        "move_wrench(wrench[:3], wrench[3:], origin - point)", "move_wrench(wrench[:3], wrench[3:], point - origin)",
        "test_sensors_options.py",
    ),
    Mutant(
        "sensors", "weight of the tool added, not taken off", RUN + "instruments.py",
        "force + weight, torque + moment", "force - weight, torque - moment",
        "test_sensors_options.py",
    ),
    Mutant(
        "sensors", "a turned reading turns the other way", RUN + "instruments.py",
        "axes.T @ force, axes.T @ torque", "axes @ force, axes @ torque",
        "test_sensors_options.py",
    ),
    Mutant(
        "sensors", "samples are taken late", RUN + "instruments.py",
        "if r.rate is None or time >= self._next_sample - 1e-9:", "if r.rate is None or time > self._next_sample + 1e-9:",
        "test_sensors_options.py",
    ),
    Mutant(
        "sensors", "wrench of a hold the other way", STEP + "measure.py",
        "forces = reaction[system.v_slices[hold.body].start + hold.rows]",
        "forces = -reaction[system.v_slices[hold.body].start + hold.rows]",
        "test_held_ends.py::test_a_rod_on_held_nodes_hangs_from_their_drive",
    ),
    Mutant(
        "sensors", "who holds nodes is pulled the other way", STEP + "measure.py",
        "mount[leader] = mount[leader] + there", "mount[leader] = mount[leader] - there",
        "test_held_ends.py::test_a_rod_on_held_nodes_hangs_from_their_drive "
        "test_held_ends.py::test_held_nodes_follow_a_motion_and_a_driven_body_exactly",
    ),
    Mutant(
        "sensors", "torque of a hold about the world's origin", "femsim/model/holds.py",
        "np.cross(points - about, forces)", "np.cross(points, forces)",
        "test_held_ends.py::test_a_rod_on_held_nodes_hangs_from_their_drive "
        "test_held_ends.py::test_held_nodes_follow_a_motion_and_a_driven_body_exactly",
    ),
    Mutant(
        "sensors", "slip of contacts that do not press", STEP + "measure.py",
        "slip = np.sqrt((forces.contacts.u[pressing, 1:]", "slip = np.sqrt((forces.contacts.u[:, 1:]",
        "test_gauges.py::test_what_slides_past_without_a_touch_does_not_slip",
    ),
    # ------------------------------------------------------------------ energies
    Mutant(
        "energies", "sign of the damping work", STEP + "measure.py",
        "work -= dt * body.damping_power(solution.v[v])", "work += dt * body.damping_power(solution.v[v])",
        "test_work_of_damping.py",
    ),
    Mutant(
        "energies", "friction gives", STEP + "measure.py",
        "friction_loss = old.friction_loss - float(", "friction_loss = old.friction_loss + float(",
        "test_gauges.py::test_slip_and_energies_on_an_incline",
    ),
    Mutant(
        "energies", "drives take what they give", STEP + "measure.py",
        "(system.external + reaction) @ solution.v", "(system.external - reaction) @ solution.v",
        "test_work_of_damping.py::test_a_drive_does_the_work_that_lifting_takes",
    ),
    Mutant(
        "energies", "work of tendons and pumps forgotten", STEP + "measure.py",
        "work += end.driving + dt * sum(coupling.power for coupling in system.couplings)", "work += end.driving",
        "test_chambers.py::test_power_is_pressure_times_flow_and_energy_never_grows",
    ),
    Mutant(
        "energies", "work of drives at the end of a step forgotten", STEP + "stepper.py",
        "end = replace(end, driving=work)", "pass",
        "test_driven_scenes.py::test_a_robot_led_by_its_tool_takes_one_iteration_and_keeps_its_loop_closed",
    ),
    Mutant(
        "energies", "work of the driven ends of rods the other way", STEP + "measure.py",
        "work += dt * own.power", "work -= dt * own.power",
        "test_rod_momentum.py::test_work_of_a_driven_end_is_the_energy_that_a_rod_gains",
    ),
    Mutant(
        "energies", "potential energy falls with height", STEP + "measure.py",
        "potential -= body.mass *", "potential += body.mass *",
        "test_gauges.py::test_energies_by_body_sum_to_the_totals_and_are_kept_in_a_fall",
    ),
    Mutant(
        "energies", "elastic energy of the last body only", STEP + "measure.py",
        "elastic += body.elastic_energy(new.q[q])", "elastic = body.elastic_energy(new.q[q])",
        "test_health_watch.py::test_elastic_energies_of_all_bodies_are_summed",
    ),
    Mutant(
        "energies", "inverted elements of the last body only", STEP + "measure.py",
        "inverted += body.inverted_elements", "inverted = body.inverted_elements",
        "test_health_watch.py::test_inverted_elements_of_all_bodies_are_counted",
    ),
    Mutant(
        "energies", "impacts do twice their work", STEP + "end_velocity_kernels.py",
        "late = 0.5 * dt * (acting", "late = dt * (acting",
        "test_end_velocity.py::test_friction_of_an_impact_takes_the_energy_of_the_motion_along_the_floor",
    ),
    Mutant(
        "energies", "half of the dashpots' loss", BODIES + "viscous.py",
        "self.loss += 2.0 * self._sum(mean * change)", "self.loss += self._sum(mean * change)",
        "test_viscous.py::test_work_of_a_step_is_energy_and_loss",
    ),
    Mutant(
        "energies", "a tendon that pulls takes energy", "femsim/model/actuators.py",
        "self.power = -self.force * rate", "self.power = self.force * rate",
        "test_true_step.py::test_a_tendon_holds_at_the_end_of_the_step",
    ),
    Mutant(
        "energies", "elastic energy of an element without its trace", BODIES + "corotational_kernels.py",
        "v * (mu * squares + 0.5 * la * trace * trace)", "v * (mu * squares + la * trace * trace)",
        "test_soft.py",
    ),
    # ------------------------------------------------------------------ judges
    Mutant(
        "judges", "Rayleigh alpha in the balance", BODIES + "soft.py",
        "outside -= self.elastic.rayleigh_alpha *", "outside += self.elastic.rayleigh_alpha *",
        "test_work_of_damping.py",
    ),
    Mutant(
        "judges", "couplings in the balance the other way", STEP + "measure.py",
        "norm(lacking - couplings.sum(axis=0) if", "norm(lacking + couplings.sum(axis=0) if",
        "test_held_ends.py::test_a_body_hangs_on_a_rod test_held_ends.py::test_a_rod_on_held_nodes_hangs_from_their_drive",
    ),
    Mutant(
        "judges", "the first residual of a step is that of its end", STEP + "newton.py",
        "return self.residuals[-1]", "return self.residuals[0]",
        "test_true_step.py::test_newton_converges_quadratically_on_a_smooth_case "
        "test_true_step.py::test_a_dropped_iterate_is_seen_in_the_residual",
    ),
    Mutant(
        "judges", "equations count as solved a thousand times too early", STEP + "newton.py",
        "return self.residual <= max(tolerance, self.rounding)", "return self.residual <= max(1e3 * tolerance, self.rounding)",
        "test_true_step.py::test_newton_converges_quadratically_on_a_smooth_case "
        "test_true_step.py::test_at_the_default_tolerance_energy_never_grows",
    ),
    Mutant(
        "judges", "energy that went out counts as gone in", RUN + "health.py",
        'balance = held - work', 'balance = held - max(work, 0.0)',
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "energy from nowhere counts from the start only", RUN + "health.py",
        'e["lowest"] = min(e["lowest"], balance)', 'e["lowest"] = e["lowest"]',
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "pushing penetrations out is energy from nowhere", RUN + "health.py",
        'work = report.work + e["pushed"]', 'work = report.work',
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "elements that recover count on", RUN + "health.py",
        "                self._inverted[k] = 0\n", "                pass\n",
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "a run that ends inverted is good enough", RUN + "health.py",
        'reason.verdict, reason.text = "wrong", f"{reason.text}, and the run ends so"', "pass",
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "friction hides energy from nowhere", RUN + "health.py",
        "balance = held - work + report.friction_loss + report.viscous_loss", "balance = held - work + report.viscous_loss",
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "creep is that of one step", RUN + "health.py",
        "way = self._crept.get(pair, 0.0) + creep.share", "way = creep.share",
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "the first value of a reason stays its worst", RUN + "verdict.py",
        'elif value > known.value or verdict != known.verdict == "doubtful":', 'elif verdict != known.verdict == "doubtful":',
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "nothing is wrong", RUN + "verdict.py",
        '"wrong" if value > bounds[1] else "doubtful"', '"doubtful"',
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "overlaps at the start count twice", STEP + "vitals.py",
        "depth = depth - np.array(", "depth = depth + np.array(",
        "test_verdict.py::test_what_overlaps_at_the_start_counts_from_there",
    ),
    Mutant(
        "judges", "sliding counts as creep", STEP + "vitals.py",
        "held = np.hypot(lam[:, 1], lam[:, 2]) < _STICKS * limit * normal", "held = np.hypot(lam[:, 1], lam[:, 2]) < np.inf",
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "a long way of a body is a short one", STEP + "vitals.py",
        "far = dt * speed / float(self.sizes.extent[k])", "far = dt * speed * float(self.sizes.extent[k])",
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "what halves push out is that of one of them", STEP + "vitals.py",
        "pushed=sum(one.pushed for one in parts)", "pushed=max(one.pushed for one in parts)",
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "an infinite scale makes any residual 0", "contact/metrics_kernels.py",
        "if not (math.isfinite(residual) and math.isfinite(scale)):", "if not math.isfinite(residual):",
        "test_solver_status.py::test_relative_residuals",
    ),
    Mutant(
        "judges", "De Saxce's term the other way", "contact/metrics_kernels.py",
        "u_n += mu * math.sqrt(u_0 * u_0 + u_1 * u_1)", "u_n -= mu * math.sqrt(u_0 * u_0 + u_1 * u_1)",
        "test_metrics.py",
    ),
    Mutant(
        "judges", "forces hide a penetration", "contact/metrics_kernels.py",
        "larger(abs(e_0), abs(e_1))) / rho[m], -u[m, 0]))", "larger(abs(e_0), abs(e_1))) / rho[m], 0.0))",
        "test_feasibility.py::test_a_penetration_is_seen_beside_any_force",
    ),
    Mutant(
        "judges", "a balance relative to all that presses", "contact/metrics_kernels.py",
        "larger(loads[g], NET_FRACTION * total)", "larger(loads[g], total)",
        "test_metrics.py",
    ),
    Mutant(
        "judges", "any approach is a proof of infeasibility", "contact/feasibility.py",
        "if alone * approach < _OUT_OF_REACH * speed * net:", "if False:",
        "test_feasibility.py",
    ),
    Mutant(
        "judges", "the contact law is not asked for", "contact/solvers/judge.py",
        "self.converged = self.error <= self.tolerance", "self.converged = True",
        "test_feasibility.py",
    ),
    Mutant(
        "judges", "a plain residual may be anything", "contact/solvers/judge.py",
        "largest = max(found.dynamics, found.contact, found.plain)", "largest = max(found.dynamics, found.contact)",
        "test_solver_status.py::test_each_residual_alone_keeps_an_answer_from_being_converged",
    ),
    # joints, limits and motors; the methods of papers/000
    Mutant(
        "physics", "an upper limit pushes as a lower one", "contact/reduction.py",
        "np.where(above & ~below, -1.0, 1.0)", "np.where(above & ~below, 1.0, 1.0)",
        "test_rows.py::test_a_motor_turns_at_its_speed_and_a_limit_pushes_only_one_way",
    ),
    Mutant(
        "physics", "a motor bears twice its limit", "contact/reduction.py",
        "self._half = 0.5 * (rows.high", "self._half = 1.0 * (rows.high",
        "test_rows.py::test_a_motor_holds_a_bar_or_gives_way_at_its_limit",
    ),
    Mutant(
        "physics", "joints that are apart stay apart", "contact/equality_kernels.py",
        "x0[own] = by * total", "x0[own] = 0.0 * total",
        "test_equalities.py::test_the_basis_spans_all_that_rows_allow",
    ),
    Mutant(
        "judges", "rows of a problem are not judged", "contact/solvers/with_rows.py",
        "    if numbers[worst] <= tolerance:", "    if numbers[worst] >= 0.0:",
        "test_rows.py::test_rows_that_contradict_each_other_are_said",
    ),
    Mutant(
        "judges", "joints that contradict each other are not looked for", "contact/solvers/with_rows.py",
        "rows, limits = reduction.contradicting, reduction.rows_of(closing)", "rows = limits = reduction.rows_of(closing)",
        "test_contradictions.py",
    ),
    Mutant(
        "judges", "rounding of joints that repeat each other is a contradiction", "contact/reduction.py",
        "_BROKEN, _LEAST_BROKEN = 1e-2, 1e-3", "_BROKEN, _LEAST_BROKEN = 0.0, 0.0",
        "test_rows.py::test_rows_that_contradict_each_other_are_said test_contradictions.py",
    ),
    Mutant(
        "physics", "a joint breaks against the forces of another row", "femsim/model/joined.py",
        "((wrench[:3], strength.force), (wrench[3:],", "((wrench[3:], strength.force), (wrench[:3],",
        "test_contradictions.py",
    ),
    Mutant(
        "judges", "joints beside the contacts count as what contacts push", "contact/solvers/auto.py",
        "if not (3 * nc > n if stride.any() else rows > pushed):", "if not 3 * nc > n:",
        "test_auto.py::test_what_moves_beside_the_contacts_changes_no_pick",
    ),
    Mutant(
        "judges", "a pick that failed never rests", "contact/solvers/auto.py",
        "return self.instead if self.left and pick == self.failed else pick", "return pick",
        "test_auto.py::test_a_pick_that_failed_rests_and_comes_back",
    ),
    Mutant(
        "judges", "the residual of rows leaves out their bounds", "contact/metrics_kernels.py",
        "min(max(forces[i] - w / weight, low[i]), high[i])", "(forces[i] - w / weight)",
        "test_rows.py::test_the_yardstick_sees_each_wrong_force_and_velocity",
    ),
    Mutant(
        "physics", "dry friction of a joint holds one way only", "femsim/model/joints.py",
        "more.append((rate, 0.0, -self.friction, self.friction))", "more.append((rate, 0.0, 0.0, self.friction))",
        "test_joints.py::test_a_slider_slides_sticks_and_stops",
    ),
    Mutant(
        "energies", "joints turn round the velocity across them", STEP + "joint_velocity.py",
        "= -one.solve(velocity[one.rows])", "= -2.0 * one.solve(velocity[one.rows])",
        "test_joints.py::test_two_hinged_bars_swing_as_quadrature_says_and_keep_their_energy",
    ),
    Mutant(
        "sensors", "the impulse of a joint at the end of a step is not read", "femsim/model/joined.py",
        "self._sum_up(self.wrench + self._wrench(lam))", "self._sum_up(self.wrench)",
        "test_joints.py::test_the_reaction_is_what_moves_the_bars",
    ),
    Mutant(
        "physics", "CANAL forgets the slip of De Saxce", "contact/solvers/augmented.py",
        "self.slip = self._anderson.next(self.slip, slip, self.changed == 0 or self._slow)", "self.slip = 0.0 * slip",
        "test_canal.py::test_piles_are_solved_in_a_few_tens_of_newton_steps",
    ),
    Mutant(
        "physics", "SubADMM has its slacks the wrong way", "contact/solvers/subadmm_kernels.py",
        "(moved[p, c] + gap[m, c])", "(moved[p, c] - gap[m, c])",
        "test_subadmm.py::test_its_iterates_are_those_of_the_equations_with_slacks_and_multipliers",
    ),
    Mutant(
        "physics", "threads do not wait for each other", "contact/together.py", "    if threads > 1:\n", "    if threads > 99:\n",
        "test_together.py::test_threads_see_what_the_others_wrote_before_they_met",
    ),
    # held nodes that give way, joints that break, and judges of both
    Mutant(
        "physics", "a spring pushes held nodes away", "femsim/model/compliance.py",
        "return np.asarray(self._G.T @ wrench)",
        "return np.asarray(-self._G.T @ wrench)",
        "test_compliant_holds.py::test_a_held_block_sags_by_its_weight_over_the_stiffness",
    ),
    Mutant(
        "physics", "a spring knows no largest force", "femsim/model/compliance.py",
        "out[part] *= most / size",
        "out[part] *= 1.0",
        "test_compliant_holds.py::test_it_lets_go_at_its_largest_force_and_falls",
    ),
    Mutant(
        "sensors", "torque of a spring on held nodes about the wrong side", "femsim/model/compliance.py",
        "self.wrench[3:] += cross(arm, self.wrench[:3])",
        "self.wrench[3:] -= cross(arm, self.wrench[:3])",
        "test_compliant_holds.py::test_what_goes_with_a_hand_is_borne_by_it",
    ),
    Mutant(
        "physics", "distances of nodes that move together are sums", "femsim/model/patch_kernels.py",
        "G[3 * n + i, 3 * b + c] = -along",
        "G[3 * n + i, 3 * b + c] = along",
        "test_compliant_holds.py::test_rows_of_a_kept_shape_leave_rigid_motions_alone_and_nothing_else",
    ),
    Mutant(
        "energies", "the power of a spring is not counted", "femsim/model/compliance.py",
        "float(self.wrench @ self._latest)",
        "0.0 * float(self.wrench @ self._latest)",
        "test_compliant_holds.py::test_the_energy_of_an_undamped_spring_is_kept_and_its_work_counted",
    ),
    Mutant(
        "physics", "a broken joint leaves its parts without contact", STEP + "whole_joints.py",
        "if not held.joint.broken or",
        "if True or",
        "test_broken_joints.py::test_a_lid_lies_where_it_falls_back_when_its_joint_has_broken",
    ),
    Mutant(
        "judges", "a matrix counts as positive definite whatever its factors say", "contact/solvers/definite.py",
        "        except NotPositiveError:\n            return False",
        "        except NotPositiveError:\n            return True",
        "test_definite.py::test_against_eigenvalues",
    ),
    Mutant(
        "judges", "forces that press on what parts pass", "contact/solvers/judge.py",
        "if idle > VELOCITY_BOUND * pace:", "if False:",
        "test_feasibility.py::test_a_force_that_presses_on_what_parts_is_not_converged",
    ),
    Mutant(
        "judges", "single precision is shown the whole diagonal", "contact/solvers/definite.py",
        "*= 1.0 - _LEFT_OUT",
        "*= 1.0",
        "test_definite.py::test_what_single_precision_cannot_see_is_refused",
    ),
    Mutant(
        "judges", "a contact problem of rods may be begun loosely", STEP + "system.py",
        "not any(body.kind == \"links\" for body in self.bodies)",
        "True",
        "test_loose_first.py::test_a_pile_with_rods_is_not_begun_loosely",
    ),
    Mutant(
        "judges", "a loose answer of a pile may be the last", STEP + "newton.py",
        "(loose and len(residuals) == 1)",
        "False",
        "test_loose_first.py::test_a_loose_answer_that_is_enough_is_followed_by_a_sharp_one",
    ),
    Mutant(
        "judges", "rounding excuses contacts that break their law", "contact/solvers/judge.py",
        "not found.contact <= tolerance < dynamics",
        "not tolerance < dynamics",
        "test_rounding.py",
    ),
    Mutant(
        "judges", "depth of boxes that lie flush is not measured", "contact/detect_kernels.py",
        "limit = max(limit, HAIR * max(hx, hy, hz))",
        "pass",
        "test_boxes.py::test_equal_boxes_flush_on_each_other_are_as_deep_without_a_margin",
    ),
    Mutant(
        "judges", "a corner of a mesh presses on a face that its edges lead into", "contact/facing_kernels.py",
        "if facing >= -LEAN and", "if facing >= -inf and",
        "test_facing.py::test_halves_of_a_body_press_on_the_face_between_them_alone",
    ),
    Mutant(
        "judges", "corners on edges of a mesh trust its sampled distance", "contact/facing_kernels.py",
        "(shapes.kind[b] == BOX or not on_crease(place, b, hair, creases))",
        "True",
        "test_facing.py::test_flush_cubes_are_as_deep_without_a_margin",
    ),
    Mutant(
        "physics", "servos aim at where their profile begins the step", "femsim/model/profile_kernels.py",
        "begin + theta * (end - begin), (end",
        "begin, (end",
        "test_tree.py::test_servos_that_follow_profiles_are_read_at_once_as_one_by_one",
    ),
    Mutant(
        "physics", "profiles go on beyond their last key frame", "femsim/model/profile_kernels.py",
        "at = min(max(t, pieces.start[low]), pieces.last[k])",
        "at = max(t, pieces.start[low])",
        "test_drives.py::test_many_profiles_at_once_have_the_bits_of_each",
    ),
    Mutant(
        "judges", "small groups count as solved after three sweeps", "contact/split.py",
        "if not found <= tolerance:",
        "if False:",
        "test_end_velocity.py::test_small_groups_have_the_bits_of_a_solver_for_each",
    ),
    Mutant(
        "judges", "sweeps keep the forces of the largest residual", "contact/solvers/local_kernels.py",
        "if rows[i, 0] < least:",
        "if rows[i, 0] > least:",
        "test_local_solvers.py::test_sweeps_at_once_are_those_one_by_one",
    ),
    Mutant(
        "judges", "driven parts are looked at where they were once", STEP + "led_pairs.py",
        "if asked != self._asked:",
        "if self._asked == b\"\":",
        "test_robot_verdicts.py::test_a_fixed_base_that_a_command_moves_is_looked_at_again",
    ),
    Mutant(
        "energies", "the summary gives to friction what damping took", "femsim/run/result.py",
        "lost {parts['friction']} to friction", "lost {parts['other']} to friction",
        "test_verdict.py::test_the_summary_says_where_the_energy_of_a_sliding_box_went",
    ),
    Mutant(
        "sensors", "middles of quadratic faces keep the pressure of their corners", BODIES + "soft_output.py",
        "out[middle] -= 2.0 * given", "out[middle] -= 0.0 * given",
        "test_soft_output.py::test_even_pressure_on_quadratic_elements_reads_evenly",
    ),
    Mutant(
        "judges", "a pin is in a rod only where it is through", STEP + "thin_rods.py",
        "return max(0.0, radius - float(signed_distance", "return max(0.0, -radius - float(signed_distance",
        "test_thin_rods.py",
    ),
    Mutant(
        "judges", "a pin that starts in a rod went there", STEP + "thin_rods.py",
        "depth = self._depth(one, state, placed) - start", "depth = self._depth(one, state, placed)",
        "test_thin_rods.py",
    ),
    Mutant(
        "judges", "shapes are deep in each other turned the other way", STEP + "deep_inside.py",
        "(points[inside] - place) @ turn)[0]", "(points[inside] - place) @ turn.T)[0]",
        "test_deep_inside.py",
    ),
    Mutant(
        "judges", "a cup is as thick as it is large", STEP + "thin_shapes.py",
        "return min(smallest, 2.0 * shape.padding) if isinstance(shape, Revolved) else smallest", "return smallest",
        "test_thin_shapes.py::test_the_wall_of_a_cup_counts_as_thin",
    ),
    Mutant(
        "physics", "two soft fingers are a pile", STEP + "system.py",
        "and not self.lags and not any", "and not any",
        "test_loose_first.py::test_two_large_bodies_are_no_pile",
    ),
    Mutant(
        "physics", "blocks between joined sets are twice as large", "contact/equality_kernels.py",
        "out[a] = 0.5 * (out[a] + out[b])", "out[a] = out[a] + out[b]",
        "test_equalities.py",
    ),
    Mutant(
        "judges", "rounding counts squares of terms", "contact/metrics.py",
        "norm(problem.weight * np.sqrt(squares))", "norm(problem.weight * squares)",
        "test_rounding.py::test_rounding_is_what_its_formula_says",
    ),
    Mutant(
        "judges", "what solvers know of W holds for narrow bodies too", "contact/solvers/judge.py",
        "if most > self.tolerance and self._narrow_scales", "if most < 0.0 and self._narrow_scales",
        "test_narrow.py::test_the_judge_holds_narrow_bodies_to_the_scale_of_w",
    ),
    Mutant(
        "judges", "the inverse near the diagonal forgets a sign", "contact/narrow_kernels.py",
        "total -= factors[j, k] * inverse[j + i, k - i]", "total += factors[j, k] * inverse[j + i, k - i]",
        "test_narrow.py::test_the_inverse_near_the_diagonal",
    ),
    Mutant(
        "physics", "a flying box goes on with old factors", "contact/solvers/exact.py",
        "self._fresh = small or not", "self._fresh = not",
        "test_rod_momentum.py::test_a_box_that_flies_and_turns_gains_nothing_by_what_the_solver_leaves",
    ),
    Mutant(
        "physics", "a cable becomes slack by its length in the middle of the step", "femsim/model/actuators.py",
        "conserving = v_hat is not None and self._settings.conserving", "conserving = False",
        "test_tendons.py::test_a_cable_that_becomes_slack_and_taut_gives_back_what_it_took",
    ),
    Mutant(
        "physics", "a cone is as steep as its base is wide", "contact/frustum_kernels.py",
        "nr, nz = height / length, narrowing / length", "nr, nz = height / length, radius / length",
        "test_cones.py",
    ),
    Mutant(
        "sensors", "slip counts from a speed that is the same at any size", "femsim/step/contacts.py",
        "self.rules.slow, state, taken)", "1e-6, state, taken)",
        "test_invariance.py",
    ),
    Mutant(
        "judges", "a stop that nothing moves must not close by rounding", "contact/reduction.py",
        "phi[held & (phi[:, 0] > -_ROUNDED * speeds), 0] = 0.0", "pass",
        "test_joints.py::test_loops_that_cannot_move_converge",
    ),
    Mutant(
        "sensors", "driven bodies exert what the first linearisation says", "femsim/step/newton.py",
        "system.lead(last.solution.v)", "pass",
        "test_driven_bodies.py",
    ),
    Mutant(
        "sensors", "who drives a robot bears what calms its joints backwards", "femsim/model/bodies/tree.py",
        "forces.drive[3:6] +=", "forces.drive[3:6] -=",
        "test_driven_bodies.py",
    ),
    Mutant(
        "energies", "a motion that jumps works with the velocity of the step", "femsim/step/end_velocity.py",
        "0.5 * (old.v + end.v) - given.v, 0.0)", "0.0, 0.0)",
        "test_driven_bodies.py",
    ),
    Mutant(
        "physics", "what starts and stops within a step strikes nothing", "femsim/step/prescribed.py",
        "end[struck] = v[struck]", "pass",
        "test_driven_bodies.py",
    ),
    Mutant(
        "sensors", "single columns of a log keep their sign", "femsim/studies/comparison/readers.py",
        "* (sign * factor))", "* factor)",
        "test_compare_columns.py",
    ),
    Mutant(
        "physics", "a heavy body hides what a light one lacks, and where contacts go", "femsim/step/newton.py",
        "not last.hides(newton)", "True",
        "test_turning_tables.py",
    ),
    Mutant(
        "physics", "contacts that would sink in where a step leads are not asked", "femsim/step/rows_kernels.py",
        "worst = max(worst, -sink * there)", "pass",
        "test_small_steps.py::test_by_how_much_contacts_creep_on_other_rows test_invariance.py",
    ),
    Mutant(
        "physics", "a driven roller is led off its tangent along normals too", "femsim/step/stepper.py",
        "stay=self.newton.tolerance is None)", "stay=True)",
        "test_turning_tables.py",
    ),
    Mutant(
        "physics", "a box goes as its corners would on the base that carries it", "femsim/step/point_contacts.py",
        "place = np.where(free[other, None], found.placed.translation[other], c.position[own])", "place = c.position[own]",
        "test_turning_tables.py test_contact_rows.py",
    ),
    Mutant(
        "physics", "the theta rule leaves contacts at the start where bodies turn together", "femsim/step/turning_kernels.py",
        "worst = max(worst, common * math.sqrt(dot(way, way)))", "pass",
        "test_turning_tables.py test_small_steps.py",
    ),
    Mutant(
        "physics", "contacts of a thread that are not kept again count as lost", "femsim/step/point_contacts.py",
        "rows.found.margin, whole=True)", "rows.found.margin)",
        "test_middle.py",
    ),
    Mutant(
        "physics", "cones a hair apart overlap in the direction that is searched for", "contact/rim_kernels.py",
        "or mantles_apart(a, b, shapes)[0] >= 0.0", "or False",
        "test_cones.py",
    ),
    Mutant(
        "judges", "a case that is killed at Ctrl-C counts as one whose process died", "femsim/studies/sweeps/process.py",
        "self._stopped = True", "pass",
        "test_sweep.py::test_a_case_that_is_stopped_has_no_row",
    ),
)  # fmt: skip
