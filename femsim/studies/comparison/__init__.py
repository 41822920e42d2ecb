"""A run beside the log of an experiment.

`logs`
    Logs of experiments (CSV, C3D, ROS bags, MCAP) and the card that says what their files do not.
`signals`
    Filters, common time grids, and the lag between two records.
`agreement`
    Numbers that say how well two signals agree.
`compare`
    `compare(run, log)`: all of it, axis by axis.
"""
