"""A film as one HTML file: pictures, a slider, play and speed; no network, no codec, opens anywhere."""

from __future__ import annotations

import base64
import html
import io
import json
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from viz.files import temporary_name

__all__ = ["Animation"]

#: More pictures than this are thinned, so that the file can be sent: about 25 MB.
MOST_PICTURES = 600
WIDEST = 1280  # pixel
QUALITY = 85  # of JPEG

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title><style>
body{{font:15px/1.45 system-ui,sans-serif;margin:1.2em auto;max-width:{width}px;padding:0 1em;color:#2b2f36;background:#fff}}
h1{{font-size:1.15em;margin:0 0 .2em}}p{{margin:.2em 0;color:#5a6572}}
img{{display:block;margin:auto;max-width:100%;max-height:max(14em,100vh - 9em)}}
#bar{{display:flex;gap:.8em;align-items:center;padding:.5em 0}}#place{{flex:1}}button,select{{font:inherit;min-width:4.5em}}
output{{min-width:6em;text-align:right;font-variant-numeric:tabular-nums}}
</style></head><body><h1>{title}</h1><p>{words}</p><img id="picture" alt="{title}">
<div id="bar"><button id="play">Play</button><input id="place" type="range" min="0" max="0" value="0" aria-label="Picture">
<output id="time"></output><select id="speed" aria-label="Speed"><option>0.1 x<option>0.25 x<option>0.5 x<option selected>1 x
<option>2 x<option>5 x</select></div><script>
const pictures=[
"""
#: `times` are those of the run; at 1 x a second of the run takes a second.
_TAIL = """];
const times={times};
const $=id=>document.getElementById(id),last=times.length-1;
let clock=times[0],playing=false,before=0,shown=-1;
$("place").max=last;
for(const p of pictures){{new Image().src="data:image/jpeg;base64,"+p}}
function show(k){{if(k!==shown){{shown=k;$("picture").src="data:image/jpeg;base64,"+pictures[k];$("place").value=k;
$("time").textContent="t = "+times[k].toFixed({decimals})+" s"}}}}
function set(on){{playing=on;$("play").textContent=on?"Pause":"Play";before=performance.now();
if(on){{if(shown===last)clock=times[0];requestAnimationFrame(tick)}}}}
function tick(now){{if(!playing)return;clock+=(now-before)/1000*parseFloat($("speed").value);before=now;
let k=shown;if(clock<times[k])k=0;while(k<last&&times[k+1]<=clock)k++;show(k);
if(clock>=times[last])set(false);else requestAnimationFrame(tick)}}
$("play").onclick=()=>set(!playing);
$("place").oninput=e=>{{set(false);const k=+e.target.value;clock=times[k];show(k)}};
document.onkeydown=e=>{{if(e.target.tagName==="SELECT")return;
if(e.key===" "&&e.target.tagName!=="BUTTON"){{e.preventDefault();set(!playing)}}
if(e.target.tagName!=="INPUT"&&(e.key==="ArrowRight"||e.key==="ArrowLeft")){{set(false);
const k=Math.min(last,Math.max(0,shown+(e.key==="ArrowRight"?1:-1)));clock=times[k];show(k)}}}};
show(0);
</script></body></html>
"""


class Animation:
    """An HTML page with the pictures of a run, written under a temporary name and renamed when complete.

    Parameters
    ----------
    path : Path
        The page.
    size : (int, int)
        Width and height of the pictures added, pixel; wider ones are reduced to 1280.
    total : int
        Number of pictures that will be added; of more than 600, only every second, third and so on is kept, and the last.
    title, words : str
        Heading, and a line below it.
    decimals : int
        Of the time shown.
    """

    def __init__(self, path: Path, size: tuple[int, int], total: int, title: str, words: str, decimals: int) -> None:
        self._path = path
        self._temporary = Path(temporary_name(path))
        self._every = -(-total // MOST_PICTURES)
        self._total = total
        self._decimals = decimals
        self._added = 0
        self._times: list[float] = []
        self._size = (min(size[0], WIDEST), round(size[1] * min(1.0, WIDEST / size[0])))
        self._file = self._temporary.open("w", encoding="utf-8")
        self._file.write(_HEAD.format(title=html.escape(title), words=html.escape(words), width=self._size[0]))

    def add(self, picture: npt.NDArray[np.uint8], time: float) -> None:
        """Append a picture, shape (height, width, 3), of a time of the run [s]."""
        from PIL import Image

        number, self._added = self._added, self._added + 1
        if number % self._every and number != self._total - 1:
            return
        drawn = Image.fromarray(picture)
        if drawn.size != self._size:
            drawn = drawn.resize(self._size, Image.Resampling.LANCZOS)
        data = io.BytesIO()
        drawn.save(data, "JPEG", quality=QUALITY, subsampling=0)
        self._file.write(f'"{base64.b64encode(data.getvalue()).decode("ascii")}",\n')
        self._times.append(time)

    def finish(self) -> None:
        """Complete the page and rename it."""
        self._file.write(_TAIL.format(times=json.dumps(self._times), decimals=self._decimals))
        self._file.close()
        os.replace(self._temporary, self._path)

    def abandon(self) -> None:
        """Discard an unfinished page; no effect after `finish`."""
        self._file.close()
        self._temporary.unlink(missing_ok=True)
