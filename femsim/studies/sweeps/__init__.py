"""Sweeps: one file, one command, thousands of runs on a laptop or a cluster.

The tour, in the order of use:

`file`
    `read_sweep` reads and validates SWEEP.toml.
`sampling`
    `make_cases` turns its parameters into cases; a case is named by a digest of all that its numbers depend on.
`metrics`
    summary numbers such as ``mean(floor_fz_N, 0.5, 1.0)``, and conditions such as ``max_penetration_m > 1e-3``.
`case`
    `run_case` runs one case and writes its folder.
`process`
    `CaseProcess` runs cases one after the other in a process of its own, which can be killed when a case hangs.
`engine`
    `Engine` hands cases to a Dask cluster, its own or one that exists, and yields a row a case as they end.
`results`
    the table, one row a case.
`sweep`
    `sweep` does all of it; `estimate_cost` is the dry run.
`sensitivity`
    `sensitivity` runs the sweep of a design of Saltelli and makes indices of Sobol of its metrics.
"""
