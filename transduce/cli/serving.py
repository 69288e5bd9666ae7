"""transduce serve | play: regressions over HTTP, and a page to try them in."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from .printing import say


def serve(
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Bundled models or .safetensors files; the first is the default.",
        ),
    ] = ("general,adr,burgers"),
    host: Annotated[
        str,
        typer.Option(help="The address to listen on; one that other machines reach needs a token."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="TRANSDUCE_TOKEN", help="What clients must send: 16 characters or more."
        ),
    ] = None,
    max_mb: Annotated[
        int,
        typer.Option(
            min=1,
            help="The largest body of a request; operators may take 16 times as much together.",
        ),
    ] = 32,
    rate: Annotated[
        float, typer.Option(min=0.01, help="Requests a second that an address may send.")
    ] = 100.0,
    expire: Annotated[
        float,
        typer.Option(
            min=1, help="Seconds after which an operator that nobody asks for is forgotten."
        ),
    ] = 3600.0,
) -> None:
    """Serve regressions over HTTP: POST examples, get an operator's id; POST queries, get
    predictions."""
    from ..serving.command import serve

    serve(
        model.split(","),
        host,
        port,
        token,
        max_mb * 2**20,
        rate,
        expire,
        partial(print, flush=True),
    )


def play(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where on this machine; 0 for any that is free.")
    ] = 8642,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether to open the page.")
    ] = True,
) -> None:
    """Try it in a page in the browser, served to this machine alone."""
    import webbrowser

    from ..playground import start
    from ..playground.app import make_app, warm_the_rest, warm_up

    def ready(url: str) -> None:
        say(f"the page is at {url}    (Ctrl-C ends it)")
        if browser:
            webbrowser.open(url)
        warm_the_rest()

    warm_up()
    start(make_app(), "127.0.0.1", port, ready)
