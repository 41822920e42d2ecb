"""Where femsim is installed, and its version."""

from pathlib import Path

__version__ = "0.1.0"
#: The folder that holds the packages femsim, materials, meshes, contact, viz and scenes side by side.
ROOT = Path(__file__).resolve().parents[2]
