"""Mutants of the other rooms of `femsim/`: scenes, runs, sensors, studies."""

from mutant import Mutant

RUN = "femsim/run/"
MUTANTS = (
    # ------------------------------------------------------------------ physics
    Mutant(
        "physics", "neighbours in a robot press on each other", "femsim/scene/own_contact.py",
        "if one != other and above.get(one) != other and above.get(other) != one:", "if one != other:",
        "test_own_contact.py",
    ),
    Mutant(
        "physics", "friction of a statement holds for one order of the two only", "femsim/scene/frictions.py",
        "meant = np.outer(first, second) | np.outer(second, first)", "meant = np.outer(first, second)",
        "test_friction_pairs.py",
    ),
    # ------------------------------------------------------------------ sensors
    Mutant(
        "sensors", "axes of a reading are those at the end of a step", RUN + "sensors.py",
        "back = self._stepper, (1.0 - report.theta) * ", "back = self._stepper, 0.0 * ",
        "test_sensors_options.py",
    ),
    Mutant(
        "sensors", "the wrench of a joint forgets what contacts do behind its link", RUN + "sensors.py",
        "np.isin(c.part, self._parts)", "(c.part == self.part)",
        "test_middle.py::test_a_motor_exerts_what_its_joint_bears_where_a_link_behind_is_hit",
    ),
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
        "out[:3] -= mass * gravity", "out[:3] += mass * gravity",
        "test_gauges.py::test_joint_of_a_finger",
    ),
    Mutant(
        "sensors", "gap to any partner", RUN + "sensors.py",
        "(part[:, side] == self.part) & self._selection.partners[part[:, 1 - side]]", "part[:, side] == self.part",
        "test_gauges.py",
    ),
    Mutant(
        "sensors", "mean over sub-steps without their lengths", RUN + "selection.py",
        "    for dt, c in parts:", "    for dt, c in ((1.0, c) for _, c in parts):",
        "test_gauges.py::test_a_sensor_of_some_contacts_is_the_mean_over_the_parts_of_a_step",
    ),
    Mutant(
        "sensors", "force of the second side without its sign", RUN + "selection.py",
        "-own[:, 1:] * forces", "own[:, 1:] * forces",
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
        "if r.rate is None or time >= self._next_sample - self._slack:", "if r.rate is None or time > self._next_sample + 1e-9:",
        "test_sensors_options.py",
    ),
    Mutant(
        "sensors", "single columns of a log keep their sign", "femsim/studies/comparison/readers.py",
        "* (sign * factor))", "* factor)",
        "test_compare_columns.py",
    ),
    Mutant(
        "sensors", "nodes beyond the edge of a box bear a share of its area", RUN + "sensors.py",
        "            bears[number, side] &= own\n", "            pass\n",
        "test_gauges.py::test_area_under_a_box_is_that_of_its_face",
    ),
    Mutant(
        "sensors", "tables that a program removed stay away", RUN + "recorder.py",
        "if here and (path.stat().st_size if path.is_file() else -1) != self._size:", "if False:",
        "test_simulate.py::test_a_table_that_another_program_changed_is_whole_at_the_end",
    ),
    Mutant(
        "sensors", "tables are written into another run of the same name", RUN + "recorder.py",
        "here = path.parent.is_dir() and os.path.samestat(path.parent.stat(), self._folder)", "here = path.parent.is_dir()",
        "test_simulate.py::test_tables_are_not_written_into_a_folder_of_the_same_name",
    ),
    Mutant(
        "sensors", "frames of long runs come a step late", RUN + "recorder.py",
        "if time < self._next_frame - ON_TIME * self.stepper.settings.dt:", "if time < self._next_frame - 1e-9:",
        "test_sensors_options.py::test_frames_and_samples_are_on_time_after_many_steps",
    ),
    Mutant(
        "sensors", "forces of rows of many steps act at their ends", "femsim/studies/comparison/run_series.py",
        "early = (0.5 - (self.theta - 0.5) / parts)", "early = (1.0 - self.theta)",
        "test_compare_columns.py",
    ),
    Mutant(
        "sensors", "run folders do not know the steps of their rows", "femsim/studies/comparison/run_series.py",
        "return np.interp(time, ends[there], parts[there]) if there.any() else None", "return None",
        "test_compare_columns.py::test_a_run_knows_the_steps_of_its_rows_in_memory_and_in_its_folder",
    ),
    # ------------------------------------------------------------------ energies
    Mutant(
        "energies", "the summary gives to friction what damping took", RUN + "result.py",
        "lost {parts['friction']} to friction", "lost {parts['other']} to friction",
        "test_verdict.py::test_the_summary_says_where_the_energy_of_a_sliding_box_went",
    ),
    # ------------------------------------------------------------------ judges
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
        "judges", "pushing out what steps let in is work", RUN + "health.py",
        ' - e["mended"]\n', '\n',
        "test_verdict.py::test_energy_of_pushing_out_what_steps_let_in_comes_from_nowhere",
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
        "judges", "a case that is killed at Ctrl-C counts as one whose process died", "femsim/studies/sweeps/process.py",
        "self._stopped = True", "pass",
        "test_sweep.py::test_a_case_that_is_stopped_has_no_row",
    ),
    Mutant(
        "judges", "columns that are swapped are called a mirror", "femsim/studies/comparison/words.py",
        "if sign < 0 and turn.min() == 0.0:", "if False:",
        "test_compare.py::test_a_frame_that_fits_better_is_suggested",
    ),
    Mutant(
        "judges", "of a few steps one in which a pick failed is many", RUN + "health.py",
        "count / max(steps, _FEWEST.get(name, 1))", "count / max(steps, 1)",
        "test_health_watch.py",
    ),
    Mutant(
        "judges", "what touches a rim in passing drags it", RUN + "health.py",
        "or lasts >= _MEAN_TIME else 0.0", "or lasts >= 0.0 else 0.0",
        "test_broken_joints.py",
    ),
)  # fmt: skip
