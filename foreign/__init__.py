"""Files of others, read with checked sizes, and their libraries only in a child with limits. Imports nothing of ours.

A library that reads a damaged or hostile file may run for ever, fill the memory or crash. It cannot do that to a simulation:

- `child`: `call(function, ...)` runs a reader in a child process with limits on memory and time. The child is forked by a helper
  process that has imported the library already, so that a call costs some milliseconds; the helper starts with the first call.
- `mesh_files`, `hdf5`, `logs`, `vtk_files`, `tables`: the readers that run there, meshio, h5py, ezc3d, mcap and rosbags, VTK,
  pyarrow; plain arrays come back. `abaqus_sets` reads what meshio mistakes.
- `binary_meshes`: STL and the .msh of MuJoCo, read here, since their sizes say what they hold.
- `text`: JSON and TOML with checked size and nesting, and npz archives whose headers are checked before anything is allocated.
- `whole`: the other way round, files that others never see half-written. Every room writes by it.

What cannot be read raises `Refused`, a ValueError with a reason; who called names the file and what to do.
"""

from foreign.child import Refused, call, in_this_process

__all__ = ["Refused", "call", "in_this_process"]
