"""Sweeps: one file, one command, thousands of runs on a laptop or a cluster.

The tour, in the order of use:

`file`
    `read_sweep` reads and validates SWEEP.toml.
`sampling`
    `make_cases` turns its parameters into cases. The name of a case is a digest of everything that its numbers depend on.
`metrics`
    summary numbers such as ``mean(floor_fz_N, 0.5, 1.0)``, and conditions such as ``max_penetration_m > 1e-3``.
`case`
    `run_case` runs one case and writes its folder.
`process`
    `CaseProcess` runs cases one after the other in a separate process, which can be killed when a case hangs.
`engine`
    `Engine` hands cases to a Dask cluster, its own or an existing one, and yields the row of each case as it ends.
`folder`
    `check_folder`, `begun_folder`, `hold_results`: the folder of results, which one sweep or calibration at a time works on.
`results`
    the table, one row per case.
`sweep`
    `sweep` does all of it; `estimate_cost` is the dry run.
`many`, `packing`
    `run_many` does it from Python, with a function that builds the scene and a table, without a file; how functions reach another
    process.
`sensitivity`
    `sensitivity` runs a Saltelli design and computes Sobol indices of its metrics. `command` is what the command line shows.

The words: a *case* is one set of parameters, a *job* is what a process needs to run it, a *row* is what comes back. The folder of
a case appears when it is complete, so a sweep can stop at any time and be resumed.
"""
