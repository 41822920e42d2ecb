"""Where femsim is installed, its version, and its data."""

from pathlib import Path

__version__ = "0.1.0"
#: The folder that holds the packages femsim, materials, meshes, contact, viz and scenes side by side.
ROOT = Path(__file__).resolve().parents[2]
#: A wheel has its copy of the data here. A clone never has this folder, and ``ROOT / "data"`` of a wheel may be another's.
_PACKED = ROOT / "femsim" / "_data"


def data_folder(name: str) -> Path:
    """Find a folder of ``data/``: in a clone itself, in a wheel its copy inside this package.

    Parameters
    ----------
    name : str
        "logs", "problems", "reference", "robots" or "trajectories". (Cards and meshes are found by the packages materials and
        meshes.)

    Raises
    ------
    FileNotFoundError
        The folder is missing.
    """
    folder = (_PACKED if _PACKED.is_dir() else ROOT / "data") / name
    if not folder.is_dir():
        raise FileNotFoundError(f"femsim's folder of data {folder} is missing; install femsim again.")
    return folder
