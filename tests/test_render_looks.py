"""How things look in a picture: colours and their range, arrows, edges, shadows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from drawn_runs import BOX_FACES, SIZE, an_empty_canvas, cube_tets, is_soft, read_png, write_run

import viz.camera as viewpoint
import viz.ground as ground
import viz.stage as stage
import viz.survey as survey
from meshes import box_tets
from viz import PartFrame, PvdSeries, render_run
from viz.canvas import Canvas


def test_colours_follow_the_field_on_cells_and_on_points_alike(tmp_path, drawing):
    pictures = []
    for at_cells in (True, False):
        run = write_run(tmp_path / str(at_cells), at_cells=at_cells)
        result = render_run(run, size=SIZE, stills=2, mp4=False, arrows=False)
        pictures.append([read_png(path) for path in result.frames])
    np.testing.assert_array_equal(pictures[0], pictures[1])
    first, last = pictures[0]
    assert is_soft(first)[:, :260].sum() > 500 > 10 * is_soft(last)[:, :260].sum()  # sand at first ...
    dark_blue = (last[..., 2] > 1.5 * last[..., 0]) & (last.sum(axis=-1) < 300)
    assert dark_blue[:, :260].sum() > 500  # ... the dark end at last (the colour bar is right of column 260)


def test_colours_and_fields_without_a_choice(tmp_path):
    colours = stage.RigidColours(frozenset({"table"}))
    names = ("gripper", "gripper.left", "table", "peg", "gripper.right")
    assert [colours.of(name) for name in names] == [
        stage.RIGID[0],
        stage.RIGID[0],
        stage.OBSTACLE,
        stage.RIGID[1],
        stage.RIGID[0],
    ]
    line = np.array([[0, 0, 0], [0, 0, 1.0]])
    points, tets = cube_tets(0.02)
    for soft in (False, True):
        folder = tmp_path / str(soft)
        folder.mkdir()
        with PvdSeries(folder / "frames.pvd", folder / "frames") as series:
            series.add_part("rod", line, None, "line")
            parts = {"rod": PartFrame(line, {"radius": np.full(2, 0.01), "tension": np.ones(2)})}
            if soft:
                series.add_part("cube", points, tets, "tetra")
                parts["cube"] = PartFrame(points, {"von_mises": np.ones(8)})
            series.write_frame(0.0, parts)
        assert survey.chosen_field(survey.frames_of(folder, 1)[0]) == ("von_mises" if soft else "tension")


@pytest.mark.parametrize(
    ("field", "limit", "expected"),
    [
        ("von_mises", 2.3e4, ("von Mises stress", "kPa", 1e3)),
        ("von_mises", 2.3e6, ("von Mises stress", "MPa", 1e6)),
        ("velocity", 0.5, ("speed", "mm/s", 1e-3)),
        ("contact_force", 12.0, ("contact force", "N", 1.0)),
        ("max_gap_m", 2e-3, ("max gap", "mm", 1e-3)),
        ("damage", 0.2, ("damage", "", 1.0)),
    ],
)
def test_legend_units(field, limit, expected):
    assert stage.legend(field, limit) == expected


def test_a_cut_takes_the_colours_of_the_inside(tmp_path):
    """A block whose inside is stressed: its surface says 1, its inside up to 9."""
    block = box_tets((0.1, 0.1, 0.1), 6)
    points, tets = block.points, block.tets
    offset = np.abs(points - (points.min(axis=0) + points.max(axis=0)) / 2)
    depth = offset.max(axis=1) / offset.max()  # 1 on the surface, 0 in the middle
    with PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames") as series:
        series.add_part("block", points, tets, "tetra")
        series.write_frame(0.0, {"block": PartFrame(points, {"von_mises": 1.0 + 12.0 * (1.0 - depth)}, {})})
    frames = survey.frames_of(tmp_path, 1)
    assert survey.Survey.of(frames, "von_mises").limit == pytest.approx(1.0)
    assert survey.Survey.of(frames, "von_mises", inside=True).limit > 8.0


def test_a_field_that_is_zero_nearly_everywhere_has_a_range(tmp_path):
    points, tets = cube_tets(0.02)
    with PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames") as series:
        series.add_part("cube", points, tets, "tetra")
        for number in range(30):
            values = np.zeros(8)
            values[0] = 7.9 * (number == 29)
            series.write_frame(number, {"cube": PartFrame(points, {"contact_pressure": values})})
    assert survey.Survey.of(survey.frames_of(tmp_path, 1), "contact_pressure").limit == pytest.approx(8.0)


def test_the_range_is_that_of_the_surface_and_says_where_it_ends(tmp_path):
    """A hot inner node and one hot node of twenty on the surface do not set the range."""
    import pyvista

    grid = pyvista.ImageData(dimensions=(6, 6, 6)).to_tetrahedra()
    points = np.asarray(grid.points, dtype=float)
    inner = ((points > 0) & (points < 5)).all(axis=1)
    stress = np.where(inner, 9e6, 1e3)
    stress[np.flatnonzero(~inner)[::20]] = 5e4
    with PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames") as series:
        series.add_part("cube", points, grid.cells.reshape(-1, 5)[:, 1:], "tetra")
        for number in range(3):
            series.write_frame(number, {"cube": PartFrame(points, {"von_mises": stress})})
    found = survey.Survey.of(survey.frames_of(tmp_path, 1), "von_mises")
    assert found.limit == pytest.approx(1e3)
    assert found.beyond  # the colour bar says "≥"


def test_values_of_cells_come_to_points_as_their_mean():
    import pyvista

    grid = pyvista.ImageData(dimensions=(4, 4, 4)).to_tetrahedra()
    values = np.random.default_rng(2).random(grid.n_cells)
    bare = grid.copy()
    bare.clear_data()
    bare.cell_data["values"] = values
    expected = np.asarray(bare.cell_data_to_point_data()["values"])
    np.testing.assert_allclose(survey.to_points(grid, values), expected, rtol=1e-14)


def test_arrows_are_red_and_can_be_left_out(tmp_path, drawing):
    def red(arrows: bool, number: int) -> int:
        result = render_run(run, out=tmp_path / "o", size=SIZE, stills=2, mp4=False, arrows=arrows)
        picture = read_png(result.frames[number])
        return int(((picture[..., 0] > 2 * picture[..., 1]) & (picture[..., 0] > 90)).sum())

    run = write_run(tmp_path / "run")
    assert red(True, 0) > 10
    assert red(True, 1) == 0  # the contact has opened
    assert red(False, 0) == 0


def test_arrow_of_the_largest_force_is_a_sixth_of_the_scene_and_longer_ones_are_cut(tmp_path, drawing):
    found = survey.Survey.of(survey.frames_of(write_run(tmp_path), 1), "von_mises")
    assert found.largest_force == pytest.approx(3.0)
    import pyvista

    arrows = stage.Arrows(an_empty_canvas(), found)
    tail = pyvista.PolyData(np.array([[1.0, 2.0, 3.0], [0, 0, 0], [-5, 0, 0]]))
    tail.point_data["force"] = np.array([[0, 0, 3.0], [1.5, 0, 0], [0, 90.0, 0]])
    arrows.point(tail)
    points = np.asarray(pyvista.wrap(arrows._actor.GetMapper().GetInput()).points)
    upward, impact = points[points[:, 2] > 1.0], points[points[:, 0] < -4.0]
    sideways = points[(points[:, 2] < 1.0) & (points[:, 0] > -4.0)]
    assert np.ptp(impact[:, 1]) == pytest.approx(0.2 * found.size, rel=1e-5)
    assert found.size == pytest.approx(np.sqrt(0.12**2 + 0.04**2 + 0.10**2))
    assert upward[:, 2].max() == pytest.approx(3.0)  # the tip is at the contact
    assert np.ptp(upward[:, 2]) == pytest.approx(0.16 * found.size, rel=1e-5)
    assert sideways[:, 0].max() == pytest.approx(0.0, abs=1e-6)
    assert np.ptp(sideways[:, 0]) == pytest.approx(0.08 * found.size, rel=1e-5)


def test_arrows_are_shorter_where_many_forces_act(tmp_path):
    found = survey.Survey.of(survey.frames_of(write_run(tmp_path), 1), "von_mises")
    assert found.arrow_scale == 0.16 * found.size / 3.0
    many = replace(found, crowd=4.0 * survey.FEW_ARROWS)
    assert many.arrow_scale == 0.5 * found.arrow_scale
    assert survey.Survey.joint([found, many]).arrow_scale == many.arrow_scale
    assert replace(found, largest_force=0.0, crowd=0.0).arrow_scale == 0.0


def test_survey_counts_the_forces_of_the_frame_with_most_of_them():
    import pyvista

    def frame(number: int, forces: list[float]) -> SimpleNamespace:
        contacts = pyvista.PolyData(np.zeros((len(forces), 3)))
        contacts.point_data["force"] = np.outer(forces, [0.0, 0.6, 0.8])
        parts = {"contacts": contacts, "box": pyvista.Cube()}
        return SimpleNamespace(number=number, time=0.1 * number, series=SimpleNamespace(parts=tuple(parts)), read=parts.get)

    found = survey.Survey.of([frame(0, [2.0, 2.0, 1.0]), frame(1, [4.0, np.nan])], "von_mises")
    assert found.largest_force == pytest.approx(4.0)
    assert found.crowd == pytest.approx(5.0 / 4.0)


def test_a_sharp_edge_keeps_two_normals_and_follows_the_motion(drawing):
    import pyvista

    points, _ = cube_tets(1.0)
    skin = stage.Skin(pyvista.PolyData.from_regular_faces(points, BOX_FACES))
    assert skin.mesh.n_points == 24
    quarter_turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    skin.move(pyvista.PolyData.from_regular_faces(points @ quarter_turn.T + 5.0, BOX_FACES))
    normals = np.asarray(skin.mesh.active_normals)
    np.testing.assert_allclose(np.sort(np.abs(normals), axis=1), np.tile([0, 0, 1.0], (24, 1)), atol=1e-6)
    outward = np.einsum("ij,ij->i", normals, skin.mesh.points - 5.0)
    np.testing.assert_allclose(outward, 1.0, atol=1e-6)


def test_edges_are_smooth(tmp_path, drawing):
    """Across a slanted edge the tones go over, in all pictures; nearly upright edges have no stairs of a whole pixel."""
    import pyvista

    for transparent in (False, True):
        view = viewpoint.View(np.array([0.0, -3.0, 0.0]), np.zeros(3), np.array([0.0, 0.0, 1.0]))
        drawn = Canvas(view, (160, 120), transparent)
        edge = pyvista.PolyData(np.array([[-9.0, 0, -9], [0.1, 0, -9], [-0.3, 0, 9], [-9, 0, 9]]), [4, 0, 1, 2, 3])
        edge.point_data.active_normals = np.tile(np.float32([0, -1, 0]), (4, 1))
        drawn.add(edge, "#000000")
        picture = drawn.whole().astype(float)
        drawn.close()
        dark = 1.0 - picture[..., :3].mean(axis=2) / 255.0 if not transparent else picture[..., 3] / 255.0
        assert dark.max() > 0.9 and dark.min() == 0.0
        # where the edge is, row by row: the shades of its pixels count as parts of one
        place = (dark / dark.max()).sum(axis=1)
        straight = np.polyval(np.polyfit(np.arange(120), place, 1), np.arange(120))
        assert np.abs(place - straight)[4:-4].max() < 0.3  # 0.5 without smoothing


def test_shadow_falls_below_the_body_and_fades_with_height(drawing):
    corners = np.array([[-1, -1, 0], [1, 1, 1.0]])
    floor = ground.Ground(an_empty_canvas(), np.zeros(3), np.array([0, 0, 1.0]), survey.Survey(corners, 1, 1, 1, 2))
    n = floor.PIXELS

    def darkening(height: float) -> np.ndarray:
        patch = np.random.default_rng(0).uniform([1.0, 2.0, height], [1.5, 2.5, height], (5000, 3))
        floor.cast([patch])
        return (floor._bright.reshape(-1, 3) - np.asarray(floor._image.point_data["rgb"]))[:, 0].reshape(n, n)

    low = darkening(0.0)
    row, column = np.unravel_index(np.argmax(low), low.shape)  # rows run along y, columns along x
    at = ((np.array([column, row]) + 0.5) / n * 2 - 1) * floor._half
    assert (at > [0.9, 1.9]).all() and (at < [1.6, 2.6]).all()
    assert darkening(0.5 * floor._reach).max() == pytest.approx(0.5 * low.max(), rel=0.1)
    assert darkening(1.1 * floor._reach).max() < 1.5
