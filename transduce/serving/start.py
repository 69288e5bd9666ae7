"""A server of an ASGI app on one address, with limits that the app cannot set itself: on
connections, headers and clients that do not read.

An app sees a request once its headers are there, so a client that sends them slowly, or never reads
what it asked for, is cut off here. Slow and large bodies are refused by `limits`."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..files import brief
from ..types import TransduceError
from .limits import App
from .warned import telling_warnings

CONNECTIONS = 128  # at once; one more is answered with 503
HEADER_BYTES = 16384
PATIENCE = 20.0  # seconds for headers to come whole, and for the next part of an answer to be read
KEEP_ALIVE = 5  # seconds for which a connection waits for another request
LAST_ANSWERS = 10  # seconds for requests under way when the server is asked to stop


class Protocol(H11Protocol):
    """HTTP/1.1 with a client that is waited for no longer than `PATIENCE`: for headers, for the
    rest of a body that was refused, and for it to read an answer."""

    waiting: asyncio.TimerHandle | None = None

    def _wait(self, for_client: bool) -> None:
        if for_client and self.waiting is None:
            self.waiting = self.loop.call_later(PATIENCE, self.transport.abort)
        elif not for_client and self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._wait(for_client=True)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait(
            for_client=self.cycle is None or self.cycle.response_complete or self.flow.write_paused
        )

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait(for_client=True)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._wait(for_client=self.transport.is_closing())

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(for_client=False)
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()


def start(app: App, host: str, port: int, ready: Callable[[str], None] | None = None) -> None:
    """Serve until Ctrl-C or SIGTERM. Requests that are being answered are completed first.

    Args:
        app: what is served.
        host: the address to listen on.
        port: 0 for any that is free.
        ready: called with the URL as soon as the server listens.
    """
    listening = bound(host, port)
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listening.getsockname()[1]}"
    with listening, telling_warnings(), _ending_quietly():
        make_server(app, lambda: ready(url) if ready else None).run([listening])


def make_server(app: App, ready: Callable[[], None]) -> Server:
    """The server of an app, with its limits."""
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        proxy_headers=False,  # anyone could claim to be another client
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=LAST_ANSWERS,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    return Server(config, ready)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens, or an error that says what to do."""
    listening = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(CONNECTIONS)
    except (OSError, OverflowError) as error:
        if listening is not None:
            listening.close()
        raise TransduceError(
            f"{host}:{port} cannot be listened on ({brief(error)}). Give another --port, or 0 for "
            "any."
        ) from None
    return listening


@contextmanager
def _ending_quietly() -> Iterator[None]:
    """uvicorn sends itself the signal that stopped it once more, when all is done: then it is no
    more than a return."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
