"""What a request must keep to before an app sees it: the host it names, how often it comes, its
token, the size of its body and the time that it takes. What does not is answered here, in JSON:
{"detail": "..."}.

    tokens(t) = min(burst, tokens(s) + rate (t - s)),
    a request takes one
    (of each client's address)
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]  # as ASGI has it
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SLICE = 2**16  # bytes of an answer that are sent at once
# Seconds for an answer to be read whole, or as many as it takes at so many bytes a second.
READING, PACE = (
    60.0,
    2**16,
)
ADDRESSES = (
    4096  # clients whose rate is remembered; the one that was silent for longest is forgotten first
)


@dataclass(frozen=True)
class Limits:
    """What is accepted from clients.

    Args:
        body_bytes: largest size of a request.
        bodies_bytes: largest size of all requests being read, and of all answers being sent.
        body_seconds: longest time in which a request must arrive.
        rate: requests a second from each address; two seconds' worth may come at once.
        loopback: whether only this machine is served, so that no other host name is valid.
        token: what requests must carry; None for nothing.
        open_paths: paths that need no token.
    """

    body_bytes: int = 32 * 2**20
    bodies_bytes: int = 128 * 2**20
    body_seconds: float = 30.0
    rate: float = 100.0
    loopback: bool = True
    token: str | None = None
    open_paths: tuple[str, ...] = ("/health",)


class RefusedError(Exception):
    """A request that is answered with a status and a reason, and no more."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None):
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


class GoneError(Exception):
    """A client that hung up before its request was whole, or reads its answer too slowly."""


def is_loopback(host: str) -> bool:
    """Whether a name or an address, as in `--host` or in a Host header without its port, is that of
    this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


class Guard:
    """An app behind its limits: `Guard(app, Limits())` is an app again."""

    def __init__(self, app: App, limits: Limits, clock: Callable[[], float] = time.monotonic):
        self.app, self.limits, self.clock = app, limits, clock
        # Address -> tokens, and when there were as many.
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.held = 0  # bytes of bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        taken = 0
        try:
            headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in scope["headers"]
            }
            self._check_host(headers)
            self._check_rate(scope)
            self._check_token(headers, scope["path"])
            taken = self._reserve(headers)
            body = await self._body(receive)
            await self.app(scope, _replaying(body, receive), self._counting(send))
        except RefusedError as refused:
            await _answer(send, refused)
        except GoneError:
            pass
        finally:
            self.held -= taken

    def _check_host(self, headers: dict[str, str]) -> None:
        """A page elsewhere may have its own name resolve to this machine; its browser then still
        sends that name."""
        host = headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self.limits.loopback and not is_loopback(name):
            raise RefusedError(
                421,
                f"the request names the host {host[:100]!r}; this server is for localhost. Use "
                "its address, 127.0.0.1.",
            )

    def _check_rate(self, scope: Scope) -> None:
        address, now = (scope.get("client") or ("",))[0], self.clock()
        burst = max(1.0, 2 * self.limits.rate)
        tokens, since = self.buckets.pop(address, (burst, now))
        tokens = min(burst, tokens + self.limits.rate * (now - since))
        self.buckets[address] = (tokens - (tokens >= 1), now)
        if len(self.buckets) > ADDRESSES:
            self.buckets.popitem(last=False)
        if tokens < 1:
            wait = math.ceil((1 - tokens) / self.limits.rate)
            raise RefusedError(
                429,
                f"more than {self.limits.rate:g} requests a second came. Wait {wait} s.",
                {"retry-after": str(wait)},
            )

    def _check_token(self, headers: dict[str, str], path: str) -> None:
        if self.limits.token is None or path in self.limits.open_paths:
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(
            given.strip().encode(), self.limits.token.encode()
        ):
            problem = "no token came" if not given else "the token is not this server's"
            raise RefusedError(
                401,
                f"{problem}; expected the header Authorization: Bearer TOKEN.",
                {"www-authenticate": "Bearer"},
            )

    def _reserve(self, headers: dict[str, str]) -> int:
        """Room for this request's body: as large as it says, or the largest there may be if it does
        not say."""
        length, chunked = headers.get("content-length", ""), "transfer-encoding" in headers
        size = (
            int(length)
            if length.isdecimal() and not chunked
            else self.limits.body_bytes
            if chunked
            else 0
        )
        if size > self.limits.body_bytes:
            raise self._too_large(f"{size} bytes")
        if self.held + size > self.limits.bodies_bytes:
            raise RefusedError(
                503, "too many large requests are under way. Wait 1 s.", {"retry-after": "1"}
            )
        self.held += size
        return size

    def _too_large(self, what: str) -> RefusedError:
        return RefusedError(
            413,
            f"the body has {what}; expected at most {self.limits.body_bytes}. Send fewer "
            "functions at a time, or npz.",
        )

    async def _body(self, receive: Receive) -> bytes:
        """The whole body, if it comes in time and is not too large."""
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise GoneError
                    body += message.get("body", b"")
                    if len(body) > self.limits.body_bytes:
                        raise self._too_large(f"more than {self.limits.body_bytes} bytes")
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            detail = (
                f"the body was not whole after {self.limits.body_seconds:g} s; "
                f"{len(body)} bytes came. Send less at a time."
            )
            raise RefusedError(408, detail, {"connection": "close"}) from None

    def _counting(self, send: Send) -> Send:
        """Answers go out no faster than they are read, and only so many may wait for that."""
        begun: list[Message] = []

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.append(message)
                return
            body = memoryview(message.get("body", b""))
            if (
                self.held + len(body) > self.limits.bodies_bytes
            ):  # of an answer that comes in one piece, as all do that are large
                await _answer(
                    send,
                    RefusedError(
                        503, "too many large answers are under way. Wait 1 s.", {"retry-after": "1"}
                    ),
                )
                return
            self.held += len(body)
            try:
                async with asyncio.timeout(max(READING, len(body) / PACE)):
                    if begun:
                        await send(begun.pop())
                    for place in range(0, max(1, len(body)), SLICE):
                        more = message.get("more_body", False) or place + SLICE < len(body)
                        await send(
                            {
                                "type": "http.response.body",
                                "body": bytes(body[place : place + SLICE]),
                                "more_body": more,
                            }
                        )
            except TimeoutError:
                raise GoneError from None
            finally:
                self.held -= len(body)

        return counted


def _replaying(body: bytes, receive: Receive) -> Receive:
    """What an app receives: the body at once, then whatever comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


async def _answer(send: Send, refused: RefusedError) -> None:
    body = json.dumps({"detail": refused.detail}).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **refused.headers,
    }
    start = {
        "type": "http.response.start",
        "status": refused.status,
        "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
