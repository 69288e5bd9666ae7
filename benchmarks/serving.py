"""How many requests a second `transduce serve` answers, how fast, and whether its memory stays
flat:  python -m benchmarks.serving

One server in a process of its own, on loopback, with `adr` and n = 50 examples; clients are threads
of this process, each on a connection that stays open, and ask again as soon as they are answered.
Times are of the clock, from the first byte sent to the last one read; clients share the machine
with the server. Memory is what the server's process holds (RSS) before the first request of a row
and after each tenth of them, once warm. Operators may take 64 MiB, which regressions fill before
they are measured: each then takes the place of another. Writes results/benchmarks/serving.json."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import numpy as np
import psutil
import typer
from pydantic_core import from_json, to_json

from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance
from transduce.random_fields import generator_for
from transduce.report import Row, markdown_table, write_rows
from transduce.serving.bodies import write_npz

ENCODED: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "application/json": lambda arrays: to_json(arrays, fallback=np.ndarray.tolist),
    "application/x-npz": write_npz,
}
WARM = 100  # requests before each row, or as many as it has
SEED = 0


@contextmanager
def serving() -> Iterator[tuple[str, psutil.Process]]:
    """The address of a server that this starts and stops, and its process."""
    options = ["--model", "adr", "--port", "0", "--max-mb", "4", "--rate", "1e9"]
    with subprocess.Popen(
        [sys.executable, "-m", "transduce", "serve", *options], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        try:
            yield (
                next(word.strip(";") for word in said.split() if word.startswith("http://")),
                psutil.Process(server.pid),
            )
        finally:
            server.terminate()


class Client:
    """One connection that stays open."""

    def __init__(self, url: str):
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def post(self, path: str, kind: str, body: bytes) -> tuple[bytes, float]:
        """The answer's body, and the milliseconds until it was read."""
        start = time.perf_counter()
        self.connection.request("POST", path, body, {"Content-Type": kind, "Accept": kind})
        response = self.connection.getresponse()
        content = response.read()
        milliseconds = 1000 * (time.perf_counter() - start)
        if response.status not in (200, 201):
            raise RuntimeError(f"{path} was answered with {response.status}: {content[:200]!r}")
        return content, milliseconds


def measured(
    url: str, server: psutil.Process, path: str, kind: str, body: bytes, clients: int, requests: int
) -> Row:
    """Requests, tenth after tenth of them, by so many clients at once."""

    def ask(client: Client, count: int) -> list[float]:
        return [client.post(path, kind, body)[1] for _ in range(count)]

    def rss() -> float:
        return server.memory_info().rss / 2**20

    crowd = [Client(url) for _ in range(clients)]
    each = max(1, requests // clients // 10)
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(lambda client: ask(client, max(1, min(WARM, requests) // clients)), crowd))
        memory, times = [rss()], []
        start = time.perf_counter()
        for _ in range(10):
            times += [t for part in pool.map(lambda client: ask(client, each), crowd) for t in part]
            memory.append(rss())
        seconds = time.perf_counter() - start
    for client in crowd:
        client.connection.close()
    p50, p99 = np.percentile(times, [50, 99])
    row = {
        "requests": len(times),
        "a second": len(times) / seconds,
        "p50 ms": float(p50),
        "p99 ms": float(p99),
    }
    return row | {
        "MiB before": memory[0],
        "MiB most": max(memory),
        "MiB after": memory[-1],
        "MiB at tenths": memory,
    }


def main(
    requests: Annotated[int, typer.Option(min=10, help="Of each row.")] = 2000,
    out: Annotated[Path, typer.Option(help="The folder for serving.json.")] = Path(
        "results/benchmarks"
    ),
) -> None:
    """Measure everything, print the table, write the rows."""
    task = AdvectionDiffusionReaction().sample_task(50, 100, generator_for("test", SEED))
    v, u, v_query = (
        np.asarray(f, dtype=np.float32) for f in (task.examples.v, task.examples.u, task.queries.v)
    )
    rows, load = [], os.getloadavg()  # what else the machine did
    with serving() as (url, server):
        made, _ = Client(url).post(
            "/operators", "application/json", ENCODED["application/json"]({"v": v, "u": u})
        )
        predict = f"/operators/{from_json(made)['id']}/predict"
        works = {
            "1 query": (predict, {"v": v_query[:1]}),
            "100 queries": (predict, {"v": v_query}),
            "regression, n = 50": (
                "/operators",
                {"v": v, "u": u},
            ),  # last: they drive out the operator that is asked
        }
        for what, (path, arrays) in works.items():
            for kind, encode in ENCODED.items():
                for clients in (1, 8):
                    row = measured(url, server, path, kind, encode(arrays), clients, requests)
                    rows.append(
                        {
                            "what": what,
                            "body": kind.rpartition("/")[2].removeprefix("x-"),
                            "clients": clients,
                        }
                        | row
                    )
    print(
        markdown_table(
            [
                {key: value for key, value in row.items() if not isinstance(value, list)}
                for row in rows
            ]
        )
    )
    about = {
        "command": " ".join(["python -m benchmarks.serving", *sys.argv[1:]]),
        "seed": SEED,
        "load before": load,
    }
    write_rows(out / "serving.json", rows, **about, **provenance())


if __name__ == "__main__":
    typer.run(main)
