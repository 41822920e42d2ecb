"""Import femsim first: it names the folder of compiled kernels by a digest of their sources before numba is used."""

import femsim  # noqa: F401
