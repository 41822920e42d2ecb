"""What every room uses and that knows none of them.

`errors`
    `InputError`, the error of wrong input, and `did_you_mean`.
`files`
    Files that are whole or not there.
`place`, `versions`
    Where femsim and its data are installed; the versions and the machine that a file of results names.
`rotations`, `wrenches`
    Quaternions and rotation vectors; how a wrench moves with the point it is taken about.
`toml_files`
    TOML files read with the file and field named in every error.
`numba_cache`
    The folder of compiled kernels, named by a digest of their sources.
"""
