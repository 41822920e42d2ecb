"""Calibration: parameters of a scene from logs of experiments.

The tour, in the order of use:

`file`
    `read_calibration` reads and validates CALIB.toml.
`evaluate`
    `Evaluator` runs the experiments for values of the free parameters, on the engine of sweeps, and gives residuals.
`search`
    `search` looks for a good start anywhere between the bounds.
`estimate`
    least squares, covariances, intervals, and what the logs cannot tell; arrays only.
`intervals`
    profiles of the sum of squares and bootstrap, where they are asked for; arrays, and a callable that runs.
`calibrate`
    `calibrate` does all of it and writes a folder.
"""
