"""Mutants of `contact/`: geometry, contact problems, solvers, judges of their solutions."""

from mutant import Mutant

MUTANTS = (
    # ------------------------------------------------------------------ physics
    Mutant(
        "physics", "the cone is too wide beyond its edge", "contact/cone.py",
        "normal = (lam_n + mu * length) / (1.0 + mu * mu)", "normal = (lam_n + mu * length) / (1.0 + mu)",
        "test_cone.py",
    ),
    Mutant(
        "physics", "corners beside edges of a mesh trust its sampled distance", "contact/facing_kernels.py",
        "if is_beside_crease(place, b, cell, creases):", "if cell < 0.0:",
        "test_facing.py::test_leaning_boxes_are_pressed_out_of_each_other_the_shortest_way",
    ),
    Mutant(
        "physics", "balls beside edges of a mesh trust its sampled distance", "contact/round_kernels.py",
        "if distance <= sampled + HAIR * cell:", "if cell < 0.0:",
        "test_rounds.py::test_what_falls_on_a_mesh_goes_as_on_a_box",
    ),
    Mutant(
        "physics", "beyond its grid a mesh is as far as the branch that begins nearest", "contact/sdf_kernels.py",
        "branch, left, far2 = 2 * branch + (1 if two < one else 0), 2 * left + 1, min(one, two)",
        "branch, left, far2 = 2 * branch + (1 if two < one else 0), 2 * left, min(one, two)",
        "test_shapes.py::test_beyond_a_grid_the_distance_has_the_bits_of_a_search_through_all_triangles",
    ),
    Mutant(
        "physics", "small balls beside edges of a mesh are looked for within the margin alone", "contact/detect_kernels.py",
        "        return margin + cell", "        return margin",
        "test_rounds.py::test_balls_beside_convex_meshes_have_the_true_gap_and_normal",
    ),
    Mutant(
        "physics", "a ball in a valley of a mesh has one of the two faces", "contact/round_kernels.py",
        "if distance <= sampled + HAIR * cell:", "if distance <= 1e9:",
        "test_rounds.py::test_balls_beside_a_bent_bar_have_the_smaller_of_both_distances",
    ),
    Mutant(
        "physics", "vertices all around a ball press it", "contact/round_kernels.py",
        "            if least < (1.0 - HAIR)", "            if least < -1.0",
        "test_rounds.py::test_a_ball_that_slides_on_a_fine_mesh_without_friction_keeps_its_speed",
    ),
    Mutant(
        "physics", "vertices beside what lies on its ends press it", "contact/round_kernels.py",
        "                out.feature[k] = GONE", "                pass",
        "test_rounds.py::test_what_lies_on_its_ends_on_a_fine_mesh_slides_without_friction_as_on_a_box",
    ),
    Mutant(
        "physics", "vertices above the plane under both ends do not press", "contact/round_kernels.py",
        "dot(entry(out.frame, c, 0), row(points, i)) <= level[c]:", "level[c] > -1e9:",
        "test_rounds.py::test_vertices_beside_a_body_on_its_ends_press_it_where_they_are_above_the_plane_under_these",
    ),
    Mutant(
        "physics", "the lowest point of a rim is where its contact is", "contact/round_kernels.py",
        "return height - max(at - lowest, 0.0)", "return height",
        "test_rounds.py::test_a_rim_near_the_border_of_a_mesh_whose_sampled_distance_is_too_large_leaves_the_rest_to_vertices",
    ),
    Mutant(
        "physics", "contacts of rims with meshes get new names as they roll", "contact/rim_kernels.py",
        "if shapes.kind[a] == CONE or shapes.kind[b] == MESH:", "if shapes.kind[a] == CONE:",
        "test_rounds.py::test_a_cylinder_rolls_down_a_mesh_as_by_theory",
    ),
    Mutant(
        "physics", "faces far behind sharp edges hold corners", "contact/facing_kernels.py",
        "                if gap < -deep:", "                if gap < -inf:",
        "test_facing.py::test_a_sharp_edge_rests_on_another_one_near_its_end",
    ),
    Mutant(
        "physics", "vertices on the far side of a thin body are held by far faces", "contact/facing_kernels.py",
        "not reaches(i, against, out.gap[k], corners)", "out.gap[k] == inf",
        "test_facing.py::test_the_far_side_of_a_ball_is_not_behind_the_far_face_of_a_thin_wall",
    ),
    Mutant(
        "physics", "sharp edges that have passed each other are no contacts", "contact/crease_kernels.py",
        "        at -= distance / slope", "        return False",
        "test_facing.py::test_leaning_boxes_are_pressed_out_of_each_other_the_shortest_way",
    ),
    Mutant(
        "physics", "what crosses a flat edge ahead of a vertex is left to it", "contact/deformable_kernels.py",
        "            if dot(inwards, end) > 0.0:\n                return True", "            return True",
        "test_deformable.py",
    ),
    Mutant(
        "physics", "factors that could not be made count as made", "contact/delassus.py",
        "        self.factorized = False  # where that fails, what was there before is gone\n", "",
        "test_delassus.py::test_after_a_factorization_that_failed_there_is_none",
    ),
    Mutant(
        "physics", "what is beside a convex edge counts as inside", "contact/vertex_kernels.py",
        "return not encloses(here, points, triangles, tree)", "return False",
        "test_contact_by_faces.py::test_what_is_beside_a_rigid_box_is_not_deep_inside",
    ),
    Mutant(
        "physics", "a singular block is solved by cofactors", "contact/solvers/dense_kernels.py",
        "if is_singular(a, i):", "if is_singular(a, i) and mu < 0.0:",
        "test_dense.py",
    ),
    Mutant(
        "physics", "friction holds what is lifted where it can", "contact/solvers/dense.py",
        "if not any_of(~(q[::3] >= 0.0)):", "if not any_of(~(q[::3] > np.inf)):",
        "test_dense.py",
    ),
    Mutant(
        "physics", "a singular block is solved as any other", "contact/split.py",
        "if not found <= tolerance:\n                forces[i, :] = 0.0", "if False:\n                forces[i, :] = 0.0",
        "test_split.py::test_a_contact_of_links_that_hardly_go_a_third_way_holds_its_law",
    ),
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
        "physics", "CANAL forgets the slip of De Saxce", "contact/solvers/augmented.py",
        "self.slip = self._anderson.next(self.slip, slip, self.changed == 0 or self._slow)", "self.slip = 0.0 * slip",
        "test_canal.py::test_the_rule_of_the_papers_drives_the_penalty_up_where_slip_is_slow",
    ),
    Mutant(
        "physics", "SubADMM has its slacks the wrong way", "contact/solvers/subadmm_kernels.py",
        "(moved[p, c] + gap[m, c])", "(moved[p, c] - gap[m, c])",
        "test_subadmm.py::test_its_iterates_are_those_of_the_equations_with_slacks_and_multipliers",
    ),
    Mutant(
        "physics", "SubADMM pushes the wrong way along a leg", "contact/solvers/subadmm_kernels.py",
        "x[up[e]] -= L[e] * x[k]", "x[up[e]] += L[e] * x[k]",
        "test_subadmm.py::test_split_by_body_each_branch_of_a_robot_has_slacks_of_its_own",
    ),
    Mutant(
        "physics", "threads do not wait for each other", "contact/together.py", "    if threads > 1:\n", "    if threads > 99:\n",
        "test_together.py::test_threads_see_what_the_others_wrote_before_they_met",
    ),
    Mutant(
        "physics", "blocks between joined sets are twice as large", "contact/equality_kernels.py",
        "out[a] = 0.5 * (out[a] + out[b])", "out[a] = out[a] + out[b]",
        "test_equalities.py",
    ),
    Mutant(
        "physics", "a flying box goes on with old factors", "contact/solvers/exact.py",
        "self._fresh = small or not", "self._fresh = not",
        "test_rod_momentum.py::test_a_box_that_flies_and_turns_gains_nothing_by_what_the_solver_leaves",
    ),
    Mutant(
        "physics", "a cone is as steep as its base is wide", "contact/frustum_kernels.py",
        "nr, nz = height / length, narrowing / length", "nr, nz = height / length, radius / length",
        "test_cones.py",
    ),
    Mutant(
        "physics", "cones a hair apart overlap in the direction that is searched for", "contact/rim_kernels.py",
        "if deepest >= 0.0 and known < 1:", "if deepest >= 0.0 and known < -1:",
        "test_cones.py",
    ),
    Mutant(
        "physics", "crossings depend on the diagonals of the faces of a box", "contact/deformable_kernels.py",
        "return dot(arm, normal) <= SLACK * norm(across)", "return dot(arm, normal) <= SLACK * norm(arm)",
        "test_contact_by_faces.py::test_crossings_of_a_box_do_not_depend_on_the_diagonals_of_its_faces",
    ),
    Mutant(
        "physics", "a ball is held off by the nearest facet alone", "contact/vertex_kernels.py",
        "(MAX_ROUND, SAME_RIGID if vertices.rigid else SAME_ROUND)", "(MAX_ROUND, SAME_ROUND)",
        "test_small_balls.py::test_the_centre_of_a_ball_is_held_off_by_each_of_two_facets",
    ),
    Mutant(
        "physics", "what is beside a large box counts as inside far from its rim", "contact/vertex_kernels.py",
        "above <= RISES * sqrt(nearest2)", "above <= RISES * distance",
        "test_contact_by_faces.py::test_what_is_beside_a_large_box_is_not_inside_far_from_its_rim",
    ),
    Mutant(
        "physics", "a vertex beside an acute edge is deep in the face behind it", "contact/vertex_kernels.py",
        "led_through = on_face and reaches_in_front(p, t, features)", "led_through = on_face",
        "test_deformable.py::test_a_small_body_over_a_facet_of_a_large_one_is_not_in_it",
    ),
    Mutant(
        "physics", "what is beside an edge of its own body is in it", "contact/vertex_kernels.py",
        "if q < 0 and in_front_of_edge(e, offset, least, features):", "if q < 0 and distance < 0.0:",
        "test_deformable.py::test_a_spike_beside_an_edge_of_its_own_body_is_not_in_it",
    ),
    Mutant(
        "physics", "rigid lines sink into ridges that are nearly flat", "contact/surface_kernels.py",
        "features.level[e] = True, True, False", "features.level[e] = True, False, False",
        "test_deformable.py::test_a_rigid_line_lies_on_a_ridge_that_is_nearly_flat_between_its_ends",
    ),
    Mutant(
        "physics", "what is in front of a flush box beside its own is outside", "contact/vertex_kernels.py",
        "return not encloses(here, points, triangles, tree)", "return True",
        "test_deformable.py::test_points_beside_the_seam_of_two_boxes_are_inside",
    ),
    Mutant(
        "physics", "rows of joints that are rounding hold", "contact/equalities.py",
        "_LEAST_OF_VECTOR = 0.1", "_LEAST_OF_VECTOR = 0.0",
        "test_equalities.py test_joints.py",
    ),
    Mutant(
        "physics", "a locked contact has the forces of cofactors", "contact/solvers/dense_kernels.py",
        "if f_n > 0.0 and max(rounding, abs(u_n)) < lacks:", "if True:",
        "test_dense.py",
    ),
    # ------------------------------------------------------------------ judges
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
        "self.error = self._law_error(law)", "self.error = 0.0",
        "test_feasibility.py",
    ),
    Mutant(
        "judges", "a plain residual may be anything", "contact/solvers/judge.py",
        "largest = max(found.dynamics, found.contact, found.plain)", "largest = max(found.dynamics, found.contact)",
        "test_solver_status.py::test_each_residual_alone_keeps_an_answer_from_being_converged",
    ),
    Mutant(
        "judges", "rounding of a balance keeps sharp answers from being ones", "contact/solvers/judge.py",
        "return 0.0 if balance <= _BALANCED else balance", "return balance",
        "test_solver_status.py::test_a_balance_may_be_off_by_rounding_however_sharp_an_answer_should_be",
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
        "judges", "joints beside the contacts count as what contacts push", "contact/solvers/auto.py",
        "if not (3 * nc > n if any_of(stride) else rows > pushed):", "if not 3 * nc > n:",
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
        "judges", "rounding excuses contacts that break their law", "contact/solvers/judge.py",
        "not found.contact <= tolerance < dynamics",
        "not tolerance < dynamics",
        "test_rounding.py",
    ),
    Mutant(
        "judges", "depth of boxes that lie flush is not measured", "contact/detect_kernels.py",
        "return max(margin, HAIR * largest)",
        "return margin",
        "test_boxes.py::test_equal_boxes_flush_on_each_other_are_as_deep_without_a_margin",
    ),
    Mutant(
        "judges", "balls farther from a mesh than the margin have contact", "contact/round_kernels.py",
        "if not out.gap[k] < margin[i]:", "if False:",
        "test_rounds.py::test_the_distance_of_a_ball_does_not_depend_on_the_margin",
    ),
    Mutant(
        "judges", "a corner of a mesh presses on a face that its edges lead into", "contact/facing_kernels.py",
        "better = facing >= -LEAN and", "better = facing >= -inf and",
        "test_facing.py::test_halves_of_a_body_press_on_the_face_between_them_alone",
    ),
    Mutant(
        "judges", "a face holds corners beyond where it ends", "contact/facing_kernels.py",
        "if better and is_on(moved(place, -gap, normal), b, 2.0 * hair, creases, shapes):", "if better:",
        "test_facing.py::test_corners_of_bodies_that_are_apart_are_no_nearer_than_these",
    ),
    Mutant(
        "judges", "small groups count as solved after three sweeps", "contact/split.py",
        "if not found <= tolerance:\n            left += 1", "if False:\n            left += 1",
        "test_split.py::test_small_groups_have_the_bits_of_a_solver_for_each",
    ),
    Mutant(
        "judges", "sweeps keep the forces of the largest residual", "contact/solvers/local_kernels.py",
        "if rows[i, 0] < least:",
        "if rows[i, 0] > least:",
        "test_local_solvers.py::test_sweeps_at_once_are_those_one_by_one",
    ),
    Mutant(
        "judges", "rounding of a robot is that of each joint alone", "contact/metrics.py",
        'if group.kind == "generalized":', 'if group.kind == "none":',
        "test_metrics.py::test_rounding_is_that_of_a_whole_robot_but_not_of_other_bodies",
    ),
    Mutant(
        "judges", "rounding hides forces", "contact/jacobian_kernels.py",
        "if fast <= part * reach and strong <= part * reach * rho[m]:", "if fast <= part * reach:",
        "test_metrics.py::test_what_rounding_makes_of_two_bodies_that_fly_side_by_side_is_no_contact",
    ),
    Mutant(
        "judges", "a joint at rest in a robot that falls counts as it moves", "contact/metrics_kernels.py",
        "most += abs(data[k]) * max(abs(v[indices[k]]), unsure[indices[k]])", "most += abs(data[k]) * abs(v[indices[k]])",
        "test_robot_friction.py::test_a_joint_at_rest_in_a_robot_that_falls_is_solved_though_only_rounding_moves_it",
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
        "judges", "a stop that nothing moves must not close by rounding", "contact/reduction.py",
        "phi[held & (phi[:, 0] > -_ROUNDED * speeds), 0] = 0.0", "pass",
        "test_joints.py::test_loops_that_cannot_move_converge",
    ),
    Mutant(
        "judges", "the path of CANAL takes points that were not reached", "contact/solvers/penalty_path.py",
        "if found.residual <= max(aim, ROUNDING):", "if np.isfinite(found.residual):",
        "test_canal.py::test_the_path_slows_down_where_a_point_is_not_reached",
    ),
    Mutant(
        "judges", "CANAL goes on where a path brought nothing", "contact/solvers/canal.py",
        "if self.gives_up and not self.over and self._is_vain:", "if False:",
        "test_canal.py::test_who_asks_others_then_does_not_wait_for_iterations_that_stall",
    ),
    Mutant(
        "judges", "CANAL gives up at once after a path", "contact/solvers/canal.py",
        "self._returned = self._done\n", "pass\n",
        "test_canal.py::test_who_asks_others_then_does_not_wait_for_iterations_that_stall "
        "test_canal.py::test_a_path_of_the_penalty_ends_where_slip_speeds_do_not_settle",
    ),
    Mutant(
        "judges", "after COND the exact solver is asked however dear it is", "contact/solvers/auto.py",
        'order = (picked, "canal", "cond", "brief")', "pass",
        "test_auto.py::test_after_cond_the_cheaper_one_goes_on_where_many_contacts_press",
    ),
    Mutant(
        "judges", "many contacts are for the exact solver however dear it is", "contact/solvers/auto.py",
        '("wide" if self._is_wide(problem, warm_start) else "brief")', '"brief"',
        "test_auto.py::test_the_cheaper_one_is_asked_first_where_many_contacts_press",
    ),
    Mutant(
        "judges", "the exact solver looks on where CANAL came near", "contact/solvers/auto.py",
        "return canal is not None and self._error(problem, canal) <= _NEARLY * self.options.tolerance", "return False",
        "test_auto.py::test_the_exact_solver_is_not_asked_where_canal_came_near",
    ),
    Mutant(
        "judges", "what comes next starts from forces that have grown without end", "contact/solvers/auto.py",
        "return warm_start if astray else WarmStart(found.v, found.lam)", "return WarmStart(found.v, found.lam)",
        "test_auto.py",
    ),
    Mutant(
        "judges", "what rounding leaves on the rows that contacts act on stays", "contact/solvers/canal_ways.py",
        "self.problem.phi[:] = self._phi + off", "pass",
        "test_canal.py::test_a_stiff_body_is_solved_as_sharply_on_the_rows_that_contacts_act_on",
    ),
)  # fmt: skip
