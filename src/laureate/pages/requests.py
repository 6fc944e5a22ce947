"""The way in and out of the local web: who may ask for what, how long it may take, and what goes back.

- Requests whose ``Host`` is neither an address nor ``localhost`` get nothing: a foreign name that is pointed at this
  machine (DNS rebinding) finds nobody.
- Only ``POST`` changes anything, only with the token that our own pages carry, and never from another origin.
- A request must arrive whole within seconds and be small, and an answer must be taken within seconds, so that slow
  clients do not hold the server; few are worked on at a time, however many there are.
- Every answer carries a strict content security policy, the refusals too.
"""

import contextlib
import hmac
import io
import ipaddress
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from laureate.lab.errors import UserError

__all__ = ["Answer", "BoundedServer", "RefusedError", "RequestHandler"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": a browser would then send our own forms with the origin "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
LARGEST_FORM = 4096
LONGEST_ADDRESS = 4096
# Seconds for a whole request to arrive (counted from the one before on the same connection), for an answer to be taken.
SECONDS_IN, SECONDS_OUT = 15.0, 30.0
MOST_CONNECTIONS = 2000
# Python runs one thread at a time: more at work would only mean more open files, and each later.
AT_WORK = 4


class RefusedError(Exception):
    """An answer other than 200, with words for the person."""

    def __init__(self, status: HTTPStatus, text: str):
        super().__init__(text)
        self.status, self.text = status, text


class Answer:
    """What goes back."""

    def __init__(
        self,
        body: str | bytes,
        kind: str = "text/html",
        status: HTTPStatus = HTTPStatus.OK,
        headers: dict[str, str] | None = None,
    ):
        self.body = body.encode() if isinstance(body, str) else body
        self.kind, self.status, self.headers = kind, status, headers or {}


class BoundedServer(ThreadingHTTPServer):
    """A thread a connection, with a bound on both. ``may_run``: a POST with the token is let in."""

    daemon_threads = True
    allow_reuse_address = True
    # Readers that come in the same moment wait in the system's queue instead of being turned away.
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], handler: type["RequestHandler"], may_run: bool):
        self.may_run, self.host = may_run, address[0]
        if ":" in self.host:
            self.address_family = socket.AF_INET6
        self.token = secrets.token_urlsafe(24)
        self.at_work = threading.BoundedSemaphore(AT_WORK)
        self._room = threading.BoundedSemaphore(min(MOST_CONNECTIONS, _most_files() - 100))
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand a connection to a thread of its own, or close it where there are too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except Exception:  # no thread could be started, and none will give the room back
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The life of one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever goes away in the middle is no news; the rest is printed on the terminal."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def _most_files() -> int:
    """How many files this process may have open, after asking for as many as the system allows."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + 200
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(200, MOST_CONNECTIONS + 200 if soft == resource.RLIM_INFINITY else soft)


class _InTime(io.RawIOBase):
    """What a client sends, as long as it arrives before the deadline: a byte now and then buys no more time."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        self.deadline = time.monotonic() + SECONDS_IN

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class RequestHandler(BaseHTTPRequestHandler):
    """One connection: who asks, and the answer. ``get`` and ``post`` say what is at which address."""

    server: BoundedServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "laureate", ""
    # Head and text go out as they are written: waiting to send them together costs 40 ms on a kept connection.
    disable_nagle_algorithm = True

    # -- what is behind it ---------------------------------------------------------------------------------------------

    def get(self, parts: list[str], query: dict[str, str]) -> Answer:
        """The page at an address, given its parts between slashes."""
        raise RefusedError(HTTPStatus.NOT_FOUND, "Perhaps the address was mistyped.")

    def post(self, parts: list[str], form: dict[str, str]) -> Answer:
        """What a form of ours does."""
        raise RefusedError(HTTPStatus.NOT_FOUND, "Perhaps the address was mistyped.")

    def problem(self, status: HTTPStatus, text: str) -> Answer:
        """How a refusal looks."""
        return Answer(text, "text/plain", status)

    # -- the way in ----------------------------------------------------------------------------------------------------

    def setup(self) -> None:
        """Read by the clock."""
        super().setup()
        self._incoming = _InTime(self.connection)
        self.rfile.close()
        self.rfile = io.BufferedReader(self._incoming)

    def handle_one_request(self) -> None:
        """One request of the connection; each has its own time."""
        self._incoming.deadline = time.monotonic() + SECONDS_IN
        super().handle_one_request()

    def do_GET(self) -> None:
        """A page, a file or a fragment."""
        self._respond(self._get)

    def do_HEAD(self) -> None:
        """The same without its text."""
        self._respond(self._get)

    def do_POST(self) -> None:
        """A form of ours."""
        self._respond(self._post)

    def _get(self) -> Answer:
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "Nothing may be sent along with this.")
        path, query = self._address()
        return self.get(path, query)

    def _post(self) -> Answer:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > LARGEST_FORM:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That form is too large.")
        form = dict(parse_qsl(self.rfile.read(int(length)).decode("utf-8", "replace")))
        self._check_sender(form)
        return self.post(self._address()[0], form)

    def _address(self) -> tuple[list[str], dict[str, str]]:
        if len(self.path) > LONGEST_ADDRESS:
            raise RefusedError(HTTPStatus.REQUEST_URI_TOO_LONG, "That address is too long.")
        # Not urlsplit: it takes `//[` for the start of a host, and complains.
        path, _, query = self.path.partition("#")[0].partition("?")
        return [unquote(part) for part in path.strip("/").split("/")], dict(parse_qsl(query))

    # -- who asks ------------------------------------------------------------------------------------------------------

    def _check_host(self) -> None:
        try:
            host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
            if host not in ("localhost", self.server.host.lower()):
                ipaddress.ip_address(host)
        except ValueError:
            raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "Open this page by its address.") from None

    def _check_sender(self, form: dict[str, str]) -> None:
        if not self.server.may_run:
            raise RefusedError(HTTPStatus.FORBIDDEN, "Runs can only be started on the machine itself.")
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site")
        if origin is not None and origin != f"http://{self.headers.get('Host', '')}":
            raise RefusedError(HTTPStatus.FORBIDDEN, "This came from another site.")
        if site not in (None, "same-origin"):
            raise RefusedError(HTTPStatus.FORBIDDEN, "This came from another site.")
        if not hmac.compare_digest(form.get("token", "").encode(), self.server.token.encode()):
            raise RefusedError(HTTPStatus.FORBIDDEN, "This page is of an earlier start of the server; load it again.")

    # -- the way out ---------------------------------------------------------------------------------------------------

    def _respond(self, handle: Callable[[], Answer]) -> None:
        with self.server.at_work if handle == self._get else contextlib.nullcontext():
            answer = self._answer(handle)
        with contextlib.suppress(ConnectionError, TimeoutError):
            self._send(answer)
            return
        self.close_connection = True

    def _answer(self, handle: Callable[[], Answer]) -> Answer:
        try:
            self._check_host()
            return handle()
        except (ConnectionError, TimeoutError):
            raise
        except RefusedError as refused:
            return self.problem(refused.status, refused.text)
        except UserError as error:
            return self.problem(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except Exception:  # one bad record must not take the page away; the terminal gets the whole story
            import traceback

            traceback.print_exc()
            return self.problem(HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong; the terminal says what.")

    def _send(self, answer: Answer) -> None:
        self.connection.settimeout(SECONDS_OUT)
        # Python takes what is no HTTP for its version 0.9, whose answers have no headers.
        self.request_version = "HTTP/1.1"
        self.send_response(answer.status)
        text = answer.kind.startswith("text/") or answer.kind.endswith(("json", "xml"))
        self.send_header("Content-Type", f"{answer.kind}; charset=utf-8" if text else answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in ({"Cache-Control": "no-store"} | HEADERS | answer.headers).items():
            self.send_header(name, value)
        if answer.status >= 400:
            # What was sent with a refused request is not read; the connection cannot be used again.
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What Python's server refuses by itself (a verb it does not know, no HTTP at all), with our headers."""
        status = HTTPStatus(code)
        self._send(self.problem(status, status.description or status.phrase))

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the terminal belongs to the person."""
