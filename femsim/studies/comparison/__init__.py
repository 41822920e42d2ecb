"""A run beside the log of an experiment: how well they agree, axis by axis.

The tour, in the order of use:

`card`
    `read_card` reads the small TOML file that says what a log does not: columns, units, frame, tare, filter.
`log`
    `read_log` reads a log of any kind and brings it to SI units and the world frame of the run: a `Log`. Below it lie `readers`
    (one for each kind of file: text tables, C3D, ROS bags) and `columns` (which column is what).
`run_series`
    `read_run` takes the same series out of a run: a `RunSeries`.
`resampling`
    low-pass filter, common time grids, gaps.
`alignment`
    `find_offset` finds when in the run a log starts, by the lag of their best correlation.
`agreement`
    the formulas: error, bias, correlation, gain of two signals.
`compare`
    `compare(run, log)` does all of it and gives a `Comparison` (in `comparison`), which prints a table and writes a report;
    `words` is what a person would say about it.

Channels are named fx ... tz for a wrench, MARKER.x ... MARKER.z for a marker, and single columns of a run by their own names
without the unit; SI units, world frame.
"""
