"""Tools that every room uses; they know nothing of bodies, contact or scenes.

`errors`
    `InputError`, the error of wrong input, and `did_you_mean`.
`arguments`
    Which argument of a call was of the wrong kind.
`files`
    Files that are whole or not there: `replacing`, `write_json`, and the sentence of a disk that is full.
`status`
    The four words for how a run, a problem, a sweep or a calibration ended, and their exit statuses.
`place`, `versions`
    Where femsim and its data are installed; versions, machine and command, as a file of results names them.
`rotations`, `wrenches`
    Quaternions and rotation vectors; wrenches about another point, and of a weight.
`table`, `units`, `packages`, `columns`
    Text tables of any layout and the units in their headers; optional packages that a reader needs; columns of a run by name.
`signals`, `threads`, `notebook`
    How a process is asked to end; threads of the numerical libraries; what notebooks show of an object.
`toml_files`
    TOML files read and checked, with the file and field named in every error.
`numba_cache`
    The folder of compiled kernels, named by a digest of their sources.
"""
