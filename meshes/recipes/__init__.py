"""How the meshes in `data/meshes` were made; run one by `python -m meshes.recipes.NAME --out FILE`.

- `ball`: the soft ball of the gripping scene (needs the extra `mesh`; pytetwild gives another mesh at
  every run, which is why its result is committed).
- `pad`: the gripper pad, a box with chamfered edges (plain numpy, the same file at every run).
- `soft_finger`: a soft finger to mount on a robot (plain numpy, the same mesh at every run).
"""
