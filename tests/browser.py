"""Headless Chromium by its own DevTools protocol: enough to open a page, read it, click and take a picture."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str | None:
    """Return the program, or None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page in one browser process; a context manager."""

    def __init__(self, program: str, profile: Path, size: tuple[int, int] = (1200, 850)) -> None:
        from websockets.sync.client import connect

        self._process = subprocess.Popen(
            [
                program, "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--remote-debugging-port=0", "--no-first-run",
                f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", "--use-gl=angle",
                "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._numbers = itertools.count(1)
        try:
            port_file = profile / "DevToolsActivePort"
            self._until(lambda: port_file.is_file() and "\n" in port_file.read_text(), "a port")
            port = port_file.read_text().split()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=20) as answer:
                (page,) = (target for target in json.load(answer) if target["type"] == "page")
            self._socket = connect(page["webSocketDebuggerUrl"], max_size=2**26)
        except BaseException:  # no browser is left behind, also not after Ctrl-C
            self._process.kill()
            self._process.wait()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()
        self._process.terminate()
        self._process.wait(timeout=20)

    @staticmethod
    def _until(condition: Any, what: str, seconds: float = 45.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"{what} did not appear within {seconds} s"
            time.sleep(0.05)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=60))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """Value of a JavaScript expression."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def text(self) -> str:
        return self.run("document.body ? document.body.innerText : ''") or ""

    def wait_for(self, condition: str, seconds: float = 45.0) -> None:
        """Wait until a JavaScript expression holds."""
        self._until(lambda: self.run(condition), condition, seconds)

    def click(self, script: str) -> None:
        """Click, as a mouse does, on the middle of the element that a JavaScript expression gives."""
        box = self.run(f"(() => {{const b = ({script}).getBoundingClientRect(); return [b.x + b.width/2, b.y + b.height/2]}})()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def picture(self) -> bytes:
        """PNG of what is seen."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])
