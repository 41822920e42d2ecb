"""Calibration: parameters of a scene from logs of experiments.

The tour, in the order of use:

`file`
    `read_calibration` reads and validates CALIB.toml.
`evaluate`
    `Evaluator` runs the experiments for values of the free parameters, on the engine of sweeps, and returns residuals.
`search`
    `search` looks for a good start anywhere between the bounds.
`estimate`
    least squares, covariances and intervals from the Jacobian; arrays only.
`profiles`, `bootstrap`
    intervals of two other kinds, where the file asks for them.
`fit`
    `Fit` goes from the start to the best point and its intervals, with the six above.
`readings`
    loss factors and creep that fitted Prony terms mean.
`concerns`
    what the logs cannot tell, in sentences.
`result`, `report`
    `CalibrationResult`, and the folder that is written of it.
`calibrate`
    `calibrate` does all of it. `command` is what the command line shows meanwhile.

Free parameters are unit coordinates everywhere inside: 0 at the lower bound, 1 at the upper one.
"""
