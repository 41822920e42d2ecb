"""Mutants of `femsim/model/`: bodies, joints, drives, holds."""

from mutant import Mutant

BODIES = "femsim/model/bodies/"
MUTANTS = (
    # ------------------------------------------------------------------ physics
    Mutant(
        "physics", "a hard servo brakes no joint but its own", "femsim/model/bodies/tree_step_kernels.py",
        "        solve_leading(braked, calmed)", "        calmed /= np.diag(braked)",
        "test_servo_energy.py",
    ),
    Mutant(
        "physics", "all objects of an .obj file count as one mesh of an MJCF model", "femsim/model/mjcf_assets.py",
        "if count > 1:", "if count > 2:",
        "test_mjcf_shapes.py::test_of_an_obj_with_several_objects_the_first_with_faces_is_read_as_in_mujoco",
    ),
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
        "physics", "the end velocity of a base without the arm of its frame", "femsim/model/commands.py",
        "cross(angular_velocity(turned, turning), self._turned(turned))", "cross(angular_velocity(turned, turning), self.arm)",
        "test_driven_bodies.py::test_the_base_of_a_robot_turns_about_its_frame",
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
        "self._fill_matrix(self._beta, 0.0, self", "self._fill_matrix(self._beta, 1.0, self",
        "test_true_step.py::test_the_linearised_equations_are_the_derivative_of_the_residual "
        "test_viscous.py::test_rayleigh_damping_is_that_of_the_law_alone",
    ),
    Mutant(
        "physics", "stiffness damping resists turns", BODIES + "soft.py",
        "turns = not settings.linear and self._turns(", "turns = settings.linear and self._turns(",
        "test_true_step.py::test_damping_by_stiffness_does_not_brake_turns",
    ),
    Mutant(
        "physics", "all regions have the last material", BODIES + "mixture.py",
        "self.of[region.elements] = number", "self.of[region.elements] = len(regions)",
        "test_regions.py",
    ),
    Mutant(
        "physics", "all regions are damped as the body", BODIES + "momentum_kernels.py",
        "law, alpha = laws[which], damping[which]", "law, alpha = laws[which], damping[0]",
        "test_regions.py",
    ),
    Mutant(
        "physics", "Prony terms of the body in all regions", BODIES + "viscous.py",
        'np.einsum("bm,bm...->m...", factor[:, self._of], values)', 'np.einsum("b,bm...->m...", factor[:, 0], values)',
        "test_regions.py",
    ),
    Mutant(
        "physics", "half of the pressure in a co-rotated element", BODIES + "corotational_kernels.py",
        "pressure = v * la * trace", "pressure = 0.5 * v * la * trace",
        "test_soft.py",
    ),
    Mutant(
        "physics", "gyroscopic forces of links are those of the start", BODIES + "rod_kernels.py",
        "gyroscopic = cross(w, spin) if linear else (0.0, 0.0, 0.0)", "gyroscopic = cross(w, spin)",
        "test_rod_scene.py test_true_step.py::test_the_equations_of_a_rod_are_those_of_its_first_linearisation",
    ),
    Mutant(
        "physics", "links that turn are foreseen to be pulled apart", BODIES + "rod_kernels.py",
        "rate += ways[k, c] * (u_j - u_i) +", "rate -= ways[k, c] * (u_j - u_i) -",
        "test_rod.py::test_pulls_are_foreseen_by_the_strain_of_the_linearisation",
    ),
    Mutant(
        "physics", "a free body turns by its velocity at the start", BODIES + "rigid_kernels.py",
        "(0.5 * (L[0] + at_end[0]), 0.5 * (L[1] + at_end[1]), 0.5 * (L[2] + at_end[2]))", "L",
        "test_true_step.py::test_the_free_rotation_is_that_of_the_formula",
    ),
    Mutant(
        "physics", "a free robot turns by the wrong angular momentum", BODIES + "rigid_kernels.py",
        "after[3 + i] += carried[i]", "after[3 + i] -= carried[i]",
        "test_tree.py::test_a_free_robot_keeps_its_momenta",
    ),
    Mutant(
        "physics", "a robot that is thrown turns by its flight", BODIES + "rigid_kernels.py",
        "if theta == 0.5:", "if True:",
        "test_tree.py::test_a_robot_that_is_thrown_does_not_spin_by_it",
    ),
    Mutant(
        "physics", "a robot's motor knows no limit", BODIES + "links.py",
        "motor.stiffness, motor.damping, motor.max_effort", "motor.stiffness, motor.damping, np.inf",
        "test_robot_scenes.py::test_a_motor_gives_no_more_than_its_limit",
    ),
    Mutant(
        "physics", "robots on a base at rest keep their energy to the order of the step only", BODIES + "tree_step_kernels.py",
        "keep_energy(first, last, start.dt, v_hat, out)", "pass",
        "test_tree.py::test_a_robot_on_a_base_at_rest_keeps_its_energy",
    ),
    Mutant(
        "physics", "a motor that follows a profile knows no limit", BODIES + "tree_joints.py",
        "motors[k].damping, motors[k].max_effort)", "motors[k].damping, np.inf)",
        "test_robot_scenes.py::test_a_motor_gives_no_more_than_its_limit",
    ),
    Mutant(
        "physics", "a rope of threads is as stiff as a solid rod", BODIES + "rod_make.py",
        "*section.bending_factor * solid", "*solid",
        "test_rod.py::test_links_are_bricks test_cable_scenes.py::test_hanging_cable_is_a_catenary",
    ),
    Mutant(
        "physics", "edges of a rigid part do not press flat edges", "femsim/model/faces.py",
        "np.concatenate(depths), rigid=True)", "np.concatenate(depths), rigid=False)",
        "test_contact_by_faces.py::test_the_edge_of_a_box_presses_a_flat_surface_between_its_nodes",
    ),
    Mutant(
        "physics", "a joint breaks against the forces of another row", "femsim/model/joined.py",
        "((wrench[:3], strength.force), (wrench[3:],", "((wrench[3:], strength.force), (wrench[:3],",
        "test_contradictions.py",
    ),
    Mutant(
        "physics", "dry friction of a joint holds one way only", "femsim/model/joints.py",
        "more.append((rate, 0.0, -self.friction, self.friction))", "more.append((rate, 0.0, 0.0, self.friction))",
        "test_joints.py::test_a_slider_slides_sticks_and_stops",
    ),
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
        "physics", "distances of nodes that move together are sums", "femsim/model/patch_kernels.py",
        "G[3 * n + i, 3 * b + c] = -along",
        "G[3 * n + i, 3 * b + c] = along",
        "test_compliant_holds.py::test_rows_of_a_kept_shape_leave_rigid_motions_alone_and_nothing_else",
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
        "physics", "a cable becomes slack by its length in the middle of the step", "femsim/model/actuators.py",
        "end_of_step(x, v_hat, self._settings) if self._settings.conserving else None", "None",
        "test_tendons.py::test_a_cable_that_becomes_slack_and_taut_gives_back_what_it_took",
    ),
    Mutant(
        "physics", "pressure resists what it should lead on", "femsim/model/actuators.py",
        "own = -pressure * H", "own = pressure * H",
        "test_chambers.py::test_the_tangent_is_all_of_the_derivative_of_the_force",
    ),
    Mutant(
        "physics", "a capsule lies across its axis on faces", "femsim/model/faces.py",
        "shape.half_length * turn[:, 2]", "shape.half_length * turn[:, 0]",
        "test_small_balls.py::test_it_lies_on_the_face_between_nodes",
    ),
    Mutant(
        "physics", "nothing keeps stiff pumped fluids from swinging", "femsim/model/swings.py",
        "self._evenness.share * min(_STIFFER * settings.strain_damping, _MOST)", "0.0",
        "test_chambers.py::test_water_that_is_pumped_in_obeys_its_law_at_the_end_of_each_step",
    ),
    Mutant(
        "physics", "a joint breaks in a step that is undone", "femsim/model/joined.py",
        'bool(memory["broken"][0])', 'self.broken or bool(memory["broken"][0])',
        "test_adaptive.py::test_a_joint_breaks_when_it_bears_too_much",
    ),
    # ------------------------------------------------------------------ sensors
    Mutant(
        "sensors", "torque of a hold about the world's origin", "femsim/model/holds.py",
        "np.cross(points - about, forces)", "np.cross(points, forces)",
        "test_held_ends.py::test_a_rod_on_held_nodes_hangs_from_their_drive "
        "test_held_ends.py::test_held_nodes_follow_a_motion_and_a_driven_body_exactly",
    ),
    Mutant(
        "sensors", "the impulse of a joint at the end of a step is not read", "femsim/model/joined.py",
        "self._sum_up(self.wrench + late)", "self._sum_up(self.wrench)",
        "test_joints.py::test_the_reaction_is_what_moves_the_bars",
    ),
    Mutant(
        "sensors", "a rod turns a joint the other way", "femsim/model/couplings.py",
        "move_wrench(forces, wrench[3:], arms)", "move_wrench(forces, wrench[3:], -arms)",
        "test_held_ends.py::test_the_joint_of_a_finger_bears_the_moment_of_a_rod_that_sticks_out",
    ),
    Mutant(
        "sensors", "a joint pulls a link half-way through a step at its lever of the end", "femsim/model/joined.py",
        "self._signs * about_centres(self.wrench, self._reach)", "self._signs * about_centres(self.wrench, self._levers())",
        "test_middle.py::test_an_axle_bears_no_torque_about_itself_where_its_wheel_lands_with_what_it_carries",
    ),
    Mutant(
        "sensors", "a spring on joints reads no damping", "femsim/model/joint_springs.py",
        "self._slope * beyond + damped + driven", "self._slope * beyond + driven",
        "test_joint_springs.py",
    ),
    Mutant(
        "sensors", "a spring on joints reads the sum of the middle of the step", "femsim/model/joint_springs.py",
        "return self.force, self.length", "return self.force, 0.5 * (self._start + self.length)",
        "test_joint_springs.py",
    ),
    Mutant(
        "sensors", "springs on joints that slide read N m", "femsim/model/joint_springs.py",
        'self.kind = "spring"', 'self.kind = "torsion"',
        "test_joint_springs.py",
    ),
    Mutant(
        "sensors", "torque of a spring on held nodes about the wrong side", "femsim/model/compliance.py",
        "self.wrench[3:] += cross(arm, self.wrench[:3])",
        "self.wrench[3:] -= cross(arm, self.wrench[:3])",
        "test_compliant_holds.py::test_what_goes_with_a_hand_is_borne_by_it",
    ),
    Mutant(
        "sensors", "middles of quadratic faces keep the pressure of their corners", BODIES + "soft_output.py",
        "out[middle] -= 2.0 * given", "out[middle] -= 0.0 * given",
        "test_soft_output.py::test_even_pressure_on_quadratic_elements_reads_evenly",
    ),
    Mutant(
        "sensors", "who drives a robot bears what calms its joints backwards", BODIES + "tree.py",
        "forces.drive[3:6] +=", "forces.drive[3:6] -=",
        "test_driven_bodies.py",
    ),
    # ------------------------------------------------------------------ energies
    Mutant(
        "energies", "gravity works on links that turn as where the step leads", BODIES + "tree.py",
        "forces.power += self._power_of_gravity(step)", "pass",
        "test_tree.py::test_a_robot_on_a_base_at_rest_keeps_its_energy",
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
    Mutant(
        "energies", "the power of a spring is not counted", "femsim/model/compliance.py",
        "float(self.wrench @ self._latest)",
        "0.0 * float(self.wrench @ self._latest)",
        "test_compliant_holds.py::test_the_energy_of_an_undamped_spring_is_kept_and_its_work_counted",
    ),
    # ------------------------------------------------------------------ judges
    Mutant(
        "judges", "rods may be stretched beyond what holds their links in line", BODIES + "rod.py",
        "np.divide(shear, along - shear,", "np.divide(along, along - shear,",
        "test_rod_stretch.py",
    ),
    Mutant(
        "judges", "Rayleigh alpha in the balance", BODIES + "soft.py",
        "outside -= self.elastic.rayleigh_alpha *", "outside += self.elastic.rayleigh_alpha *",
        "test_work_of_damping.py",
    ),
)  # fmt: skip
