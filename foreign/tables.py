"""Columns of Parquet files, by pyarrow. Call it through `foreign.call`: a damaged file may fill the memory or end the process."""

from __future__ import annotations

from typing import Any

import numpy as np

from foreign.child import Refused

#: A table of more columns is none of a sweep.
_MOST_COLUMNS = 10_000


def read_parquet(path: str) -> dict[str, Any]:
    """Read a table.

    Returns
    -------
    dict
        ``names`` of its columns in their order; ``=NAME`` the values of a column of numbers, NaN where there is none; ``texts``:
        ``[name, list of texts]`` of all others.

    Raises
    ------
    Refused
        Too many columns, or two of one name.
    """
    import pyarrow
    from pyarrow.parquet import ParquetFile

    pyarrow.set_memory_pool(pyarrow.system_memory_pool())  # which asks for what it needs only, also where no helper says so
    with ParquetFile(path, memory_map=False) as file:
        table = file.read(use_threads=False)
    names = [str(name) for name in table.column_names]
    if len(names) > _MOST_COLUMNS or len(set(names)) < len(names):
        raise Refused(f"it has {len(names)} columns, of which {len(set(names))} have names of their own")
    out: dict[str, Any] = {"names": names, "texts": []}
    for name, column in zip(names, table.columns, strict=True):
        values = np.asarray(column.to_numpy())
        if values.dtype.kind in "biuf":
            out[f"={name}"] = values
        else:
            out["texts"].append([name, ["" if value is None else str(value) for value in values.tolist()]])
    return out
