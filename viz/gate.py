"""Who may see the page of a run: requests to this machine's own name, from the page itself, with the token of its address.

A browser lets every web page send requests to programs on the user's machine, so a server at localhost must look whom it answers:
`Host` must be a name of this machine (a foreign name that was pointed here is refused), `Origin` the page's own address, and the
token, which stands in the printed address and is then kept in a cookie, must be right.
"""

from __future__ import annotations

import hmac
import http
import ipaddress
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from viz.errors import VizError

__all__ = ["Gate"]

_starting = threading.Lock()


class Gate:
    """The check of one server.

    Parameters
    ----------
    host : str
        Address at which the server listens.

    Attributes
    ----------
    token : str
        What the address of the page must carry.
    """

    def __init__(self, host: str) -> None:
        self.token = secrets.token_urlsafe(24)
        self._names = {"localhost", host.lower()}
        if not _is_loopback(host):  # other machines call this one by its names, or by an address
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._cookie = f"femsim-{secrets.token_hex(4)}"  # cookies know no ports, and two pages may be open

    @contextmanager
    def at_the_door(self) -> Iterator[None]:
        """Put the check before every request of the server that the block starts.

        viser has no place for one, so the function by which it starts its server is another one inside the block.

        Raises
        ------
        VizError
            The server did not start by that function; it would stand open.
        """
        import websockets.asyncio.server as module

        used: list[bool] = []
        original = module.serve

        def serve(*arguments: Any, **options: Any) -> Any:
            used.append(True)
            options["process_request"] = self.before(options.get("process_request"))
            return original(*arguments, **options)

        with _starting:
            module.serve = serve  # type: ignore[assignment, misc]
            try:
                yield
            finally:
                module.serve = original  # type: ignore[misc]
        if not used:
            raise VizError(
                "this version of viser starts its server in a way that femsim does not know, so the page would be open to every "
                'web page; install the one that goes with femsim: pip install "femsim[view]".'
            )

    def before(self, answer: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
        """Return what answers a request: the check, then what answered before."""

        def process(connection: Any, request: Any) -> Any:
            wrong = self.objection(request.path, request.headers)
            if wrong:
                return connection.respond(http.HTTPStatus.FORBIDDEN, f"femsim: {wrong}\n")
            response = answer(connection, request) if answer is not None else None
            if response is not None and self._given(request.path):
                response.headers["Set-Cookie"] = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                response.headers["Referrer-Policy"] = "no-referrer"
            return response

        return process

    def objection(self, path: str, headers: Any) -> str:
        """Say why a request is refused; "" where it is not.

        Parameters
        ----------
        path : str
            Path and query.
        headers : mapping with get_all
            Of websockets.
        """
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return f"the host {', '.join(hosts)[:100]!r} is no name of this machine."
        if len(origins) > 1 or any(_place(origin) != hosts[0].lower() for origin in origins):
            return f"a page at {', '.join(origins)[:100]!r} may not use this one."
        if not (self._given(path) or self._kept(headers)):
            return "the address lacks its token; open the one that 'femsim view' printed."
        return ""

    def _is_own(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        return name in self._names or _is_address(name)  # no name can be pointed elsewhere where there is none

    def _given(self, path: str) -> bool:
        try:
            given = parse_qs(urlsplit(path).query).get("token", [""])[0]
        except ValueError:
            return False
        return self._is_token(given)

    def _kept(self, headers: Any) -> bool:
        for text in headers.get_all("Cookie"):
            try:
                cookie = SimpleCookie(text).get(self._cookie)
            except CookieError:
                continue
            if cookie is not None and self._is_token(cookie.value):
                return True
        return False

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="surrogateescape"), self.token.encode())


def _place(origin: str) -> str:
    """Host and port of an origin; "" where it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
