"""The command `transduce serve`: models and limits, an app, an address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from ..transducer import Transducer
from ..types import TransduceError
from .app import make_app
from .limits import Limits, is_loopback
from .operators import Operators
from .start import start

TOKEN = 16  # characters at least


def serve(
    models: Sequence[str],
    host: str,
    port: int,
    token: str | None,
    body_bytes: int,
    rate: float,
    expire: float,
    say: Callable[[str], None],
) -> None:
    """Serve models until stopped.

    Args:
        models: names of bundled models, or files.
        host: the address to listen on.
        port: 0 for any free port.
        token: what clients must send, if anything.
        body_bytes: the largest body of a request.
        rate: requests per second that an address may send.
        expire: seconds after its last use until an operator is dropped.
        say: prints a line.
    """
    loopback = is_loopback(host)
    if not loopback and token is None:
        raise TransduceError(
            f"{host} can be reached from other machines; expected a token. Set TRANSDUCE_TOKEN, "
            "or leave out --host."
        )
    _check_token(token)
    stems = _stems(models)
    torch.set_num_threads(1)  # requests share the cores
    loaded = {
        stem: Transducer.from_pretrained(name) for stem, name in zip(stems, models, strict=True)
    }
    limits = Limits(body_bytes, 4 * body_bytes, rate=rate, loopback=loopback, token=token)
    app = make_app(loaded, limits, Operators(expire, most_bytes=16 * body_bytes))
    needed = "" if token is None else "-H 'Authorization: Bearer TOKEN' "

    def ready(url: str) -> None:
        say(f"{', '.join(models)} served at {url}; Ctrl-C stops it")
        say(
            f"curl {needed}-H 'Content-Type: application/x-npz' --data-binary @pairs.npz "
            f"{url}/operators?model={stems[0]}"
        )

    start(app, host, port, ready)


def _check_token(token: str | None) -> None:
    if token is not None and (
        len(token) < TOKEN or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise TransduceError(
            f"the token has {len(token)} characters; expected {TOKEN} or more, of ASCII without "
            "blanks. Try `openssl rand -hex 16`."
        )


def _stems(models: Sequence[str]) -> list[str]:
    """The names under which models are served; raises an error if two are equal."""
    stems = [Path(name).stem for name in models]
    if len(set(stems)) < len(stems):
        raise TransduceError(
            f"the models are called {', '.join(stems)}; expected each name once. Leave one out, "
            "or rename its file."
        )
    return stems
