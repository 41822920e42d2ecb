"""Mutants of `femsim/step/`: one time step."""

from mutant import Mutant

STEP = "femsim/step/"
MUTANTS = (
    # ------------------------------------------------------------------ physics
    Mutant(
        "physics", "gaps between links close by how their centres move alone", STEP + "point_pairs_kernels.py",
        "one = fastest_at(along, turn, between(origin, i, centre, i), reach[i])",
        "one = fastest_at(along, turn, between(origin, i, centre, i), 0.0)",
        "test_small_steps.py::test_no_gap_between_links_closes_faster_than_their_approach",
    ),
    Mutant(
        "physics", "how fast a finger is counts from the base of its robot", "femsim/step/point_rows_kernels.py",
        "return norm(plus(along, cross(turn, lever))) + reach * norm(turn)",
        "return norm(along) + (norm(lever) + reach) * norm(turn)",
        "test_small_steps.py::test_no_point_is_faster_than_the_fastest_however_far_the_base_is",
    ),
    Mutant(
        "physics", "what slides from wall to wall is held by the first one", STEP + "point_pairs_kernels.py",
        "        if best >= 0:\n            place[k] = best", "        if best >= 0:\n            place[k] = -1",
        "test_facets.py::test_the_wall_that_a_point_comes_to_takes_over_from_the_one_it_left",
    ),
    Mutant(
        "physics", "kinks of cables are held by the edges that they left", STEP + "deforming_rows_kernels.py",
        "            place[best] = i\n", "            place[best] = -1\n",
        "test_facets.py::test_the_edge_that_a_kink_comes_to_takes_over_from_that_beside_it",
    ),
    Mutant(
        "physics", "forces at edges work by half an edge", STEP + "point_contacts.py",
        "if not self._any_edges or len(start) != len(rows):", "if True:",
        "test_facets.py::test_a_ball_in_a_bowl_of_many_walls_neither_gains_nor_loses_much",
    ),
    Mutant(
        "physics", "normals lean the other way", STEP + "leaning_kernels.py",
        "share = lacks / square", "share = -lacks / square",
        "test_facets.py::test_normals_lean_along_the_way_until_they_say_what_gaps_change_by",
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
        "return end if largest(end - v) > still else v", "return v",
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
        "physics", "the work of a rebound is counted from where bodies were", STEP + "rebounds.py",
        "work[self.closed].sum(axis=1) - self.closing,", "work[self.closed].sum(axis=1) + self.closing,",
        "test_rebounds.py::test_each_rebound_keeps_the_square_of_the_restitution",
    ),
    Mutant(
        "physics", "what friction takes of rebounds comes from nowhere", STEP + "measure.py",
        "- end.friction_beyond", "- 0.0 * end.friction_beyond",
        "test_rebounds.py::test_a_tumbling_box_gains_nothing",
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
        "physics", "forces of a step act where it ends", STEP + "stepper.py",
        "self.system.moved(state, v_hat, 0.5 * dt), v_prescribed, dt, middle=True)",
        "self.system.moved(state, v_hat, dt), v_prescribed, dt, middle=True)",
        "test_middle.py::test_bodies_that_collide_keep_their_angular_momentum",
    ),
    Mutant(
        "physics", "contact pushes fingers the other way", STEP + "point_rows_kernels.py",
        "+= along + (screw[e, 3]", "-= along + (screw[e, 3]",
        "test_contact_rows.py test_gauges.py::test_joint_of_a_finger",
    ),
    Mutant(
        "physics", "contact forces of the last step are not turned", STEP + "force_memory.py",
        "_turn_into(frames[same]", "_turn_into(np.ascontiguousarray(frames[same].transpose(0, 2, 1))",
        "test_contact_rows.py",
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
        "physics", "a solved step that sinks is no better than one that is not solved", STEP + "advance.py",
        "        grade = SANK\n", "        grade = NOT_CONVERGED\n",
        "test_steps_that_sink.py::test_a_solved_step_that_sinks_is_better_than_one_that_is_not_solved",
    ),
    Mutant(
        "physics", "the error of a step is that without its first order", STEP + "adaptive.py",
        "dt * (first * speed + second * jerk)", "dt * second * jerk",
        "test_adaptive.py::test_backward_euler_falls_short_by_half_of_g_dt_squared",
    ),
    Mutant(
        "physics", "joints break at the end of the longest step", STEP + "adaptive.py",
        " and joints.broken() == broken", "", "test_adaptive.py::test_a_joint_breaks_when_it_bears_too_much",
    ),
    Mutant(
        "physics", "points catch at seams", STEP + "point_contacts.py",
        "found = found.select(~covered)", "found = found.select(covered | ~covered)",
        "test_seams.py::test_what_slides_over_a_seam_does_not_catch",
    ),
    Mutant(
        "physics", "surfaces catch at seams", STEP + "deforming_contacts.py",
        "keep &= ~self._seams.covered(*on, found.gap, placed)", "self._seams.covered(*on, found.gap, placed)",
        "test_seams.py::test_what_slides_over_a_seam_does_not_catch",
    ),
    Mutant(
        "physics", "a large box meets soft bodies at their nodes alone", STEP + "by_faces.py",
        "seen = edge or any(is_small(", "seen = any(is_small(",
        "test_snags.py::test_a_free_box_slides_on_a_soft_pad_as_far_as_friction_lets_it test_contact_by_faces.py::"
        "test_meshes_have_it_with_soft_bodies_where_they_have_edges",
    ),
    Mutant(
        "physics", "a small mesh meets soft bodies at their nodes alone", STEP + "by_faces.py",
        "seen = edge or any(is_small(one, elements[other]) for one in shapes)", "seen = edge",
        "test_contact_by_faces.py::test_meshes_have_it_with_soft_bodies_where_they_have_edges",
    ),
    Mutant(
        "physics", "a broken joint leaves its parts without contact", STEP + "whole_joints.py",
        "if not held.joint.broken or",
        "if True or",
        "test_broken_joints.py::test_a_lid_lies_where_it_falls_back_when_its_joint_has_broken",
    ),
    Mutant(
        "physics", "the points of a region have the friction of their body", STEP + "point_contacts.py",
        "self._point_skin[where] = found", "self._point_skin[where] += 0",
        "test_regions.py::test_the_region_that_touches_has_its_own_friction",
    ),
    Mutant(
        "physics", "linearisations of metal are solved for velocities that have no digits left", STEP + "newton.py",
        "<= _DIGITS:", "<= 1e9 * _DIGITS:",
        "test_falling_bar.py::test_a_bar_of_metal_swings_like_a_pendulum_too",
    ),
    Mutant(
        "physics", "two soft fingers are a pile", STEP + "system.py",
        "and not self.lags and not any", "and not any",
        "test_loose_first.py::test_two_large_bodies_are_no_pile",
    ),
    Mutant(
        "physics", "what starts and stops within a step strikes nothing", STEP + "prescribed.py",
        "end[struck] = v[struck]", "pass",
        "test_driven_bodies.py",
    ),
    Mutant(
        "physics", "a heavy body hides what a light one lacks, and where contacts go", STEP + "newton.py",
        "not search.last.hides(newton, lacked)", "True",
        "test_turning_tables.py",
    ),
    Mutant(
        "physics", "a light body has one linearisation more, however much it lacks", STEP + "newton.py",
        "lacked = search.last.own", "lacked = 0.0",
        "test_turning_tables.py::test_a_rod_swings_beside_a_block_of_100_t_as_alone",
    ),
    Mutant(
        "physics", "stiff cables that swing have symmetric tangents alone", STEP + "newton.py",
        "if not plain or last.residual <= _WHOLE * tolerance:", "if True:",
        "test_whole_tangents.py::test_a_stiff_cable_that_swings_takes_few_linearisations",
    ),
    Mutant(
        "physics", "contacts that slide are held by their normal force alone", STEP + "whole_kernels.py",
        "else way[i, k - 1]", "else 0.0",
        "test_whole_tangents.py::test_states_and_the_system_of_contacts_that_are_held",
    ),
    Mutant(
        "physics", "contacts that would sink in where a step leads are not asked", STEP + "rows_kernels.py",
        "worst = max(worst, -sink * there)", "pass",
        "test_small_steps.py::test_by_how_much_contacts_creep_on_other_rows test_invariance.py",
    ),
    Mutant(
        "physics", "strands by their centres slip where they turn as one", STEP + "deforming_rows_kernels.py",
        "times(0.5 * apart * dot(own, other) / length, other)", "times(0.0 * apart * dot(own, other) / length, other)",
        "test_touching.py",
    ),
    Mutant(
        "physics", "frames on a thread stay with its part", STEP + "point_rows_kernels.py",
        "elif is_turned[shape[m]]:", "elif is_turned[shape[m]] and m < 0:",
        "test_small_steps.py",
    ),
    Mutant(
        "physics", "contacts that were left out are not taken back", STEP + "advance.py",
        "if report.spared:", "if report.spared and whole:",
        "test_contact_by_faces.py",
    ),
    Mutant(
        "physics", "what goes astray without contacts is searched again without them", STEP + "stepper.py",
        "if rows.spared:", "if rows.spared and whole:",
        "test_contact_by_faces.py::test_what_goes_astray_without_contacts_that_others_seem_to_hold_is_not_tried_in_each_step",
    ),
    Mutant(
        "physics", "steps that leave contacts out in vain stay as frequent", STEP + "advance.py",
        "again = min(2 * left, _WHOLE_MOST)", "again = left",
        "test_contact_by_faces.py::test_steps_that_leave_contacts_out_in_vain_grow_rare",
    ),
    Mutant(
        "physics", "forces that undo overlaps may run away", STEP + "advance.py",
        "if pushing and runs_away(", "if not pushing and runs_away(",
        "test_locked.py",
    ),
    Mutant(
        "physics", "what undoes an overlap in zero gravity counts as a runaway force", STEP + "locked.py",
        "(usual + undoing_force(contacts.gap, problem, rules))", "usual",
        "test_locked.py",
    ),
    Mutant(
        "physics", "blows from elsewhere count as runaway forces", STEP + "locked.py",
        "return not first.solution.converged or report", "return True or report",
        "test_locked.py",
    ),
    Mutant(
        "physics", "a driven roller is led off its tangent along normals too", STEP + "stepper.py",
        "stay = self.newton.tolerance is None", "stay = True",
        "test_turning_tables.py",
    ),
    Mutant(
        "physics", "a box goes as its corners would on the base that carries it", STEP + "point_contacts.py",
        "place = np.where(free[other, None], found.placed.translation[other], c.position[own])", "place = c.position[own]",
        "test_turning_tables.py test_contact_rows.py",
    ),
    Mutant(
        "physics", "the theta rule leaves contacts at the start where bodies turn together", STEP + "turning_kernels.py",
        "worst = max(worst, common * math.sqrt(dot(way, way)))", "pass",
        "test_turning_tables.py test_small_steps.py",
    ),
    Mutant(
        "physics", "contacts of a thread that are not kept again count as lost", STEP + "point_contacts.py",
        "among=rows.found.contacts.point if middle", "among=rows.found.contacts.point[:20] if middle",
        "test_middle.py",
    ),
    Mutant(
        "physics", "curved shapes stay on their tangents within a step", STEP + "curved_kernels.py",
        "phi[m, c] += u[m, c]", "u[m, c] = 0.0",
        "test_cable_scenes.py",
    ),
    Mutant(
        "physics", "links that slide on curved shapes keep the normals of the start", STEP + "stepper.py",
        "max(along / _ON_CURVES, past)", "past",
        "test_cable_scenes.py::test_friction_round_a_peg_does_not_depend_on_how_far_a_cable_slides_in_a_step",
    ),
    Mutant(
        "physics", "links go straight past the edges of boxes", STEP + "point_contacts.py",
        "float(np.finfo(float).tiny) if isinstance(shape, Box)", "math.inf if isinstance(shape, Box)",
        "test_cable_scenes.py::test_a_cable_pulled_over_the_corner_of_a_box_takes_the_friction_of_a_capstan",
    ),
    Mutant(
        "physics", "balls of two elements meet nodes", STEP + "by_faces.py",
        "ROUND = 3.0", "ROUND = 1.0",
        "test_small_balls.py::test_free_ones_and_obstacles_below_three_elements_across_have_it_by_default",
    ),
    Mutant(
        "physics", "the rim of a cylinder that leans is as far out as a ball", STEP + "flat_ends.py",
        "gap[own[rim]] += shorter[rim]", "pass",
        "test_small_cylinders.py::test_the_gap_over_a_face_is_that_of_the_lowest_point_of_a_rim",
    ),
    Mutant(
        "physics", "rims of cylinders are polygons", STEP + "deforming_contacts.py",
        "if self._flat_ends.aim(found, points):", "if False:",
        "test_small_cylinders.py::test_a_coin_that_leans_rolls_on_its_rim_as_on_a_floor",
    ),
    Mutant(
        "physics", "what stands on a cap beside its middle is pressed by the round side", STEP + "flat_ends.py",
        ".max() <= _FALLS * way)", ".max() < np.inf)",
        "test_small_cylinders.py::test_what_stands_on_a_cap_beside_its_middle_is_not_beside_the_round_side",
    ),
    Mutant(
        "physics", "what lies behind a cap is pressed by the round side", STEP + "flat_ends.py",
        "(at_end | (-found.gap[own] <= to_cap))", "True",
        "test_small_cylinders.py::test_the_round_side_does_not_press_what_lies_behind_a_cap",
    ),
    Mutant(
        "physics", "glued nodes press on what exact motions lead", STEP + "whole_joints.py",
        "Grouped([*welds, *led], n_parts, part, node)", "Grouped([], n_parts, part, node)",
        "test_robot_joins.py",
    ),
    Mutant(
        "physics", "a weld bears what a motion leads into the floor", STEP + "advance.py",
        "weakest = stepper.overcome(report)", "pass",
        "test_contradictions.py::test_a_weld_breaks_where_a_motion_leads_what_it_holds_into_the_floor",
    ),
    Mutant(
        "physics", "mimic jaws are led as one", STEP + "stepper.py",
        "body.rows_between(a.link, b.link)", "np.setxor1d(body.link_rows(a.link), body.link_rows(b.link))",
        "test_robot_joins.py::test_a_jaw_closes_on_what_is_welded_to_the_jaw_that_it_mimics",
    ),
    Mutant(
        "physics", "what is driven meets soft bodies by its faces", STEP + "by_faces.py",
        "(loose and not turned[other, k] and seen)", "(not turned[other, k] and seen)",
        "test_contact_by_faces.py::test_what_is_driven_and_links_meet_nodes_unless_the_scene_says_otherwise",
    ),
    Mutant(
        "physics", "rods meet small balls by faces", STEP + "by_faces.py",
        "seen = all(map(flat, shapes)) and (", "seen = (",
        "test_small_balls.py::test_two_balls_on_a_stick_lie_on_both "
        "test_small_balls.py::test_free_ones_and_obstacles_below_three_elements_across_have_it_by_default",
    ),
    Mutant(
        "physics", "rims of cylinders aim at the farthest face", STEP + "flat_ends.py",
        "key=lambda one: one[0])", "key=lambda one: -one[0])",
        "test_small_cylinders.py::test_a_rim_between_two_faces_is_measured_to_the_nearer_one",
    ),
    Mutant(
        "physics", "caps of cylinders press along their round side too", STEP + "flat_ends.py",
        "~square & ((kind == _CAPS) | aimed)", "((kind == _CAPS) | aimed)",
        "test_small_cylinders.py::test_the_gap_over_a_face_is_that_of_the_lowest_point_of_a_rim",
    ),
    Mutant(
        "physics", "contacts of rims are looked for as if they did not go round", STEP + "deforming_contacts.py",
        "means[rims], spread[rims] = means[caps], spread[caps]", "pass",
        "test_small_cylinders.py::test_rims_are_as_fast_as_their_circles",
    ),
    Mutant(
        "physics", "a step without pushing counts though it is not solved", STEP + "locked.py",
        "    if not (report.finite and report.solution.converged):\n        return False\n", "",
        "test_locked.py",
    ),
    # ------------------------------------------------------------------ sensors
    Mutant(
        "sensors", "wrench of a hold the other way", STEP + "measure.py",
        "forces = reaction[system.v_slices[hold.body].start + hold.rows]",
        "forces = -reaction[system.v_slices[hold.body].start + hold.rows]",
        "test_held_ends.py::test_a_rod_on_held_nodes_hangs_from_their_drive",
    ),
    Mutant(
        "sensors", "a hold bears half-way through a step what acts at its end", STEP + "measure.py",
        "(acted, reaction - late), (new, late)", "(acted, reaction - late), (acted, late)",
        "test_middle.py::test_a_hold_turns_what_hits_the_nodes_that_it_holds",
    ),
    Mutant(
        "sensors", "who holds nodes is pulled the other way", STEP + "measure.py",
        "mount[leader] = mount[leader] + np.concatenate(", "mount[leader] = mount[leader] - np.concatenate(",
        "test_held_ends.py::test_a_rod_on_held_nodes_hangs_from_their_drive "
        "test_held_ends.py::test_held_nodes_follow_a_motion_and_a_driven_body_exactly",
    ),
    Mutant(
        "sensors", "slip of contacts that do not press", STEP + "rows_kernels.py",
        "if state[m] > 0:", "if state[m] >= 0:",
        "test_gauges.py::test_what_slides_past_without_a_touch_does_not_slip",
    ),
    Mutant(
        "sensors", "slip counts from a speed that is the same at any size", STEP + "contacts.py",
        "self.rules.slow, state, taken)", "1e-6, state, taken)",
        "test_invariance.py",
    ),
    Mutant(
        "sensors", "driven bodies exert what the first linearisation says", STEP + "newton.py",
        "system.lead(solution.v)", "pass",
        "test_driven_bodies.py",
    ),
    # ------------------------------------------------------------------ energies
    Mutant(
        "energies", "soft contacts hold no energy", STEP + "soft_pairs.py",
        "return 0.0 if rows.softness is None else", "return 0.0 if True else",
        "test_soft_pairs.py",
    ),
    Mutant(
        "energies", "friction that momentum does not feel holds positions back", STEP + "end_velocity.py",
        "    return allowed if gained[weaker & (gained > 0.0)].sum() > none else None", "    return None",
        "test_end_velocity.py::test_friction_that_is_taken_back_gives_no_energy",
    ),
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
        "energies", "what dry friction of joints takes is not said", STEP + "measure.py",
        "dt * sum(coupling.lost for coupling", "0.0 * sum(coupling.lost for coupling",
        "test_robot_friction.py::test_what_joints_lose_is_said_as_such",
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
        "end.driving += drive_work(", "drive_work(",
        "test_driven_bodies.py::test_the_work_of_a_motion_that_jumps_is_the_energy_that_it_gives",
    ),
    Mutant(
        "energies", "work of drives against joints at the end of a step forgotten", STEP + "stepper.py",
        "driving = -joints.power(impulses, given.end - given.v) if driven else end.driving", "driving = end.driving",
        "test_driven_scenes.py::test_a_robot_led_by_its_tool_takes_one_iteration_and_keeps_its_loop_closed",
    ),
    Mutant(
        "energies", "work of the driven ends of rods the other way", STEP + "measure.py",
        "work += dt * own.power", "work -= dt * own.power",
        "test_rod_momentum.py::test_work_of_a_driven_end_is_the_energy_that_a_rod_gains",
    ),
    Mutant(
        "energies", "potential energy falls with height", STEP + "measure.py",
        "potential -= mass *", "potential += mass *",
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
        "energies", "joints turn round the velocity across them", STEP + "joint_velocity.py",
        "= -one.solve(velocity[one.rows])", "= -2.0 * one.solve(velocity[one.rows])",
        "test_joints.py::test_two_hinged_bars_swing_as_quadrature_says_and_keep_their_energy",
    ),
    Mutant(
        "energies", "a motion that jumps works with the velocity of the step", STEP + "end_velocity.py",
        "0.5 * (old.v + end.v) - given.v, 0.0)", "0.0, 0.0)",
        "test_driven_bodies.py",
    ),
    # ------------------------------------------------------------------ judges
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
        "judges", "motions may drive links of a robot into each other", STEP + "led_pairs.py",
        "(apart | fingers | led_own_pairs(scene))", "(apart | fingers)",
        "test_own_contact.py",
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
        "judges", "overlaps at the start count twice", STEP + "vitals.py",
        "depth = depth - self._from_start(", "depth = depth + self._from_start(",
        "test_verdict.py::test_what_overlaps_at_the_start_counts_from_there",
    ),
    Mutant(
        "judges", "sliding counts as creep", STEP + "vitals_kernels.py",
        "math.hypot(lam[m, 1], lam[m, 2]) < sticks * friction[m] * normal", "math.hypot(lam[m, 1], lam[m, 2]) < math.inf",
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
        "judges", "a contact problem of rods may be begun loosely", STEP + "system.py",
        "not any(body.kind == \"links\" for body in self.bodies)",
        "True",
        "test_loose_first.py::test_a_pile_with_rods_is_not_begun_loosely",
    ),
    Mutant(
        "judges", "a loose answer of a pile may be the last", STEP + "newton.py",
        "(loose and search.solves == 1)",
        "False",
        "test_loose_first.py::test_a_loose_answer_that_is_enough_is_followed_by_a_sharp_one",
    ),
    Mutant(
        "judges", "driven parts are looked at where they were once", STEP + "led_pairs.py",
        "if asked != self._asked:",
        "if self._asked == b\"\":",
        "test_robot_verdicts.py::test_a_fixed_base_that_a_command_moves_is_looked_at_again",
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
        "judges", "a ball between nodes is as deep as its centre", STEP + "thin_shapes.py",
        "if isinstance(shape, Sphere | Capsule):", "if isinstance(shape, Revolved):",
        "test_thin_shapes.py::test_balls_are_as_deep_as_their_surface",
    ),
    Mutant(
        "judges", "forces along a surface count as pushing into it", STEP + "vitals_kernels.py",
        "first, around, enough) < enough:", "first, around, enough) < 0.0:",
        "test_snags.py",
    ),
    Mutant(
        "judges", "what fits between the four nodes of a square is not watched", STEP + "thin_shapes.py",
        "PASSES, NEEDLE, PLATE = 1.5, 0.5, 0.25", "PASSES, NEEDLE, PLATE = 1.0, 0.5, 0.25",
        "test_small_balls.py::test_a_driven_ball_that_nodes_let_through_is_said",
    ),
    Mutant(
        "judges", "pushing apart what overlaps at the start comes from nowhere", STEP + "vitals.py",
        "mended = float(each[self._from_start(contacts.part) == 0.0].sum())", "pass",
        "test_verdict.py::test_what_overlaps_an_obstacle_is_refused_or_pushed_out_with_a_word",
    ),
    Mutant(
        "judges", "what steps let in later counts as of the start", STEP + "vitals.py",
        "if self._from and new.t < _PUSHES * problem.dt + max(self._from.values()) / self._fastest:", "if self._from:",
        "test_verdict.py::test_energy_of_pushing_out_what_steps_let_in_comes_from_nowhere",
    ),
    Mutant(
        "judges", "what halves mend is that of one of them", STEP + "vitals.py",
        "mended=sum(one.mended for one in parts)", "mended=max(one.mended for one in parts)",
        "test_health_watch.py::test_halves_add_what_they_push_out_and_keep_the_worst_of_the_rest",
    ),
    Mutant(
        "judges", "what presses no node drags none", STEP + "vitals_kernels.py",
        "if same <= 0.5 * size and", "if same < 0.5 * size and",
        "test_snags.py",
    ),
)  # fmt: skip
