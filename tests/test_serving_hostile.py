"""Clients that a server on a real socket meets: malformed, oversized, slow, gone and many. It
refuses or serves each, and goes on."""

import io
import json
import socket
import struct
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
import torch

from transduce import models
from transduce.serving import start
from transduce.serving.app import make_app
from transduce.serving.bodies import write_npz
from transduce.serving.limits import Guard, Limits
from transduce.spaces import SineModes
from transduce.types import ExampleSet

torch.manual_seed(0)
T = models.representer(SineModes(8), SineModes(8), heads=1, width=4, hidden=8).eval()
CLIENT = httpx.Client(timeout=20, verify=False, trust_env=False)
LIMITS = Limits(body_bytes=2**20, bodies_bytes=2**22, body_seconds=0.5, rate=1e6)


def functions(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


v, u = functions(6, 17), functions(6, 17, seed=1)
PAIRS = {"v": v.tolist(), "u": u.tolist()}


@contextmanager
def serving(limits=LIMITS):
    """A server in a thread: its port, and its app's guard, which counts bytes."""
    app = make_app({"sines": T}, limits)
    ready = threading.Event()
    server = start.make_server(app, ready.set)
    with start.bound("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert ready.wait(10)
            yield port, guard_of(app)
        finally:
            server.should_exit = True
            thread.join(15)
            assert not thread.is_alive()


def guard_of(app):
    layer = app.middleware_stack
    while not isinstance(layer, Guard):
        layer = layer.app
    return layer


@pytest.fixture(scope="module")
def port():
    with serving() as (port, guard):
        yield port
        assert guard.held == 0


def post(port, path="/operators", **content):
    return CLIENT.post(f"http://127.0.0.1:{port}{path}", **content)


def health(port):
    return CLIENT.get(f"http://127.0.0.1:{port}/health")


def healthy(port):
    return health(port).json()["status"] == "ok"


def conversation(port, *parts, pause=0.0):
    """What comes back to bytes that are sent with pauses between, until the server has said all it
    will."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        received = b""
        with suppress(ConnectionError):
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
        with suppress(ConnectionError):
            while part := client.recv(65536):
                received += part
        return received


def head(*lines):
    return "\r\n".join(
        (
            "POST /operators HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            *lines,
            "",
            "",
        )
    ).encode()


def archive(content, name="v.npy", compression=zipfile.ZIP_STORED):
    with io.BytesIO() as buffer:
        with zipfile.ZipFile(buffer, "w", compression) as file:
            file.writestr(name, content)
        return buffer.getvalue()


def array_header(said):
    return archive(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(said)) + said.encode())


def pickled():
    with io.BytesIO() as buffer:
        np.savez(buffer, v=np.array([{"a": 1}], dtype=object))
        return buffer.getvalue()


def many_entries():
    with io.BytesIO() as buffer:
        with zipfile.ZipFile(buffer, "w") as file:
            for i in range(1000):
                file.writestr(f"{i}.npy", b"")
        return buffer.getvalue()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "cannot be read as npz"),
        (b"PK\x03\x04 and no more", 400, "cannot be read as npz"),
        (write_npz({"v": v})[:-40], 400, "cannot be read as npz"),
        (write_npz({"v": v}).replace(b"NUMPY", b"NUMBY"), 400, "cannot be read as npz"),
        (pickled(), 422, "a pickle and is not read"),
        (write_npz({"v": np.array(["text"])}), 422, "expected real numbers"),
        (write_npz({"v": np.array([1j])}), 422, "expected real numbers"),
        (write_npz({"v": v, "u": np.where(u > 1, np.nan, u)}), 422, "not finite"),
        (archive(b"\0" * 2**21, compression=zipfile.ZIP_DEFLATED), 413, "unpacks to 2097152 bytes"),
        (archive(b"", "../v.txt"), 422, "no array that numpy.savez"),
        (many_entries(), 422, "1000 arrays; expected at most 16"),
        (
            array_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}"),
            422,
            "holds 0 bytes",
        ),
        (
            array_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}"),
            422,
            "holds 0 bytes",
        ),
        (array_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), 422, "pickle"),
        (array_header("(" * 9000), 400, "cannot be read as npz"),
        (array_header("__import__('os').abort()"), 400, "cannot be read as npz"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value,
)
def test_hostile_archives(port, body, status, words):
    answer = post(port, content=body, headers={"content-type": "application/x-npz"})
    assert answer.status_code == status and words in answer.json()["detail"], answer.text
    assert healthy(port)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b'{"v": NaN}', 400, "not JSON"),
        (b'{"v": ' + b"[" * 4000, 400, "recursion limit"),
        (b'{"v": [1' + b"0" * 10000 + b"]}", 400, "out of range"),
        (b"[1]", 422, "expected an object"),
        (b'{"v": [[1e999]], "u": [[1]]}', 422, "not finite"),
        (b'{"v": [[1' + b"0" * 400 + b']], "u": [[1]]}', 422, "too large"),
        (b'{"v": [[1, 2], [3]], "u": [[1]]}', 422, "rows of 1 and of 2 values"),
        (b'{"v": [["1"]], "u": [[1]]}', 422, "else than numbers"),
        (b'{"v": [[true, 1]], "u": [[1]]}', 422, "else than numbers"),
        (b'{"v": [[[[[1]]]]], "u": [[1]]}', 422, "to 4 levels"),
        (b'{"v": "[[1]]", "u": [[1]]}', 422, "v is a str"),
        (b'{"v": [], "u": [[1]]}', 422, "at least one function"),
        (b'{"v": [[1]], "u": [[1]], "model": ["sines"]}', 422, "else than numbers"),
        (b'{"v": [' + b"[]," * 2**12 + b"[]]}", 413, "lists; expected at most 4096"),
        (b'{"v": [[' + b"0," * 2**16 + b"0,0]]}", 413, "65537 commas; expected at most 65536"),
        (b'{"v": [' + b"{}," * 1000 + b"{}]}", 422, "many objects"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value,
)
def test_hostile_json(port, body, status, words):
    answer = post(port, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status and words in answer.json()["detail"], answer.text
    assert healthy(port)


def test_what_is_not_http(port):
    assert conversation(port, b"\x16\x03\x01 hello\r\n\r\n").startswith(b"HTTP/1.1 400")
    # Headers of 128 KiB.
    assert conversation(port, b"GET / HTTP/1.1\r\n" + b"A: " + b"a" * 2**17).startswith(
        b"HTTP/1.1 400"
    )
    assert conversation(port, head("Content-Length: -1")).startswith(b"HTTP/1.1 400")
    assert conversation(
        port,
        head("Content-Length: 5", "Transfer-Encoding: chunked", "Connection: close"),
        b"0\r\n\r\n",
    ).startswith(b"HTTP/1.1 4")
    assert healthy(port)


def test_oversized_bodies(port):
    """With a length, before a byte of it is read, and without one, once there is too much."""
    large = b" " * (2**20 + 1)
    for content in (large, iter([large[: 2**19], large[: 2**19], b" "])):
        answer = post(port, content=content, headers={"content-type": "application/json"})
        assert answer.status_code == 413 and "expected at most 1048576" in answer.json()["detail"]
    assert b" 413 " in conversation(port, head("Content-Length: 999999999999", "Connection: close"))
    assert healthy(port)


def test_slow_bodies(port):
    """Whether they stop, or drip on."""
    assert b" 408 " in conversation(port, head("Content-Length: 100"), b"{")
    began = time.monotonic()
    assert b" 408 " in conversation(port, head("Content-Length: 100"), *[b" "] * 10, pause=0.1)
    assert time.monotonic() - began < 5 and healthy(port)


def test_clients_that_hang_up(port):
    body = json.dumps(PAIRS).encode()
    whole = head(f"Content-Length: {len(body)}") + body
    for sent in (b"", whole[:30], whole[:-10], whole):
        with socket.create_connection(("127.0.0.1", port)) as client:
            # A reset, not a goodbye.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(sent)
    assert healthy(port)


def test_slow_headers_and_answers_that_nobody_reads(monkeypatch):
    monkeypatch.setattr(start, "PATIENCE", 0.3)
    with serving(Limits(body_bytes=2**24, rate=1e6)) as (port, guard):
        began = time.monotonic()
        assert conversation(port, b"POST /operators HT") == b"" and time.monotonic() - began < 5
        id = post(port, json=PAIRS).json()["id"]
        body = json.dumps(
            {"v": functions(10, 17).tolist(), "at": 2**17}
        ).encode()  # an answer of some 25 MB
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(
                head(f"Content-Length: {len(body)}").replace(
                    b"/operators", f"/operators/{id}/predict".encode()
                )
                + body
            )
            assert client.recv(15) == b"HTTP/1.1 200 OK"
            assert healthy(port) and guard.held > 2**20  # still to be read
            wait_until(lambda: guard.held == 0)
        assert healthy(port)


def test_an_answer_that_is_read_too_slowly_is_cut_off(monkeypatch):
    """Though there is always some that was read in time."""
    monkeypatch.setattr("transduce.serving.limits.READING", 0.5)
    monkeypatch.setattr("transduce.serving.limits.PACE", 2**30)
    with serving(Limits(body_bytes=2**24, rate=1e6)) as (port, guard):
        id = post(port, json=PAIRS).json()["id"]
        body = json.dumps(
            {"v": functions(10, 17).tolist(), "at": 2**17}
        ).encode()  # an answer of some 25 MB
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
            client.settimeout(20)
            client.connect(("127.0.0.1", port))
            client.sendall(
                head(f"Content-Length: {len(body)}").replace(
                    b"/operators", f"/operators/{id}/predict".encode()
                )
                + body
            )
            began = time.monotonic()
            with suppress(ConnectionError):
                while client.recv(2**16):
                    time.sleep(0.05)  # 20 s in all
            assert time.monotonic() - began < 10
        assert guard.held == 0 and healthy(port)


@pytest.mark.parametrize("given_up", [False, True])
def test_the_rest_of_an_answer_that_was_given_up_has_no_longer_to_be_read(given_up):
    protocol = object.__new__(start.Protocol)
    protocol.flow, protocol.loop, protocol.transport = (
        Mock(),
        Mock(),
        Mock(**{"is_closing.return_value": given_up}),
    )
    protocol.pause_writing()
    protocol.resume_writing()
    assert protocol.loop.call_later.return_value.cancel.called is not given_up


def wait_until(true, seconds=10):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    assert true()


def test_many_clients_at_once(port):
    """Twenty, each with its own operator and queries, half as JSON and half as npz, get each its
    own answer."""

    def one(seed):
        v, u, v_query = (functions(6, 17, seed=3 * seed + i) for i in range(3))
        made = (
            post(port, json={"v": v.tolist(), "u": u.tolist()})
            if seed % 2
            else npz(port, "/operators", v=v, u=u)
        )
        path = f"/operators/{made.json()['id']}/predict"
        answers = [
            post(port, path, json={"v": v_query.tolist()})
            if seed % 2
            else npz(port, path, v=v_query)
            for _ in range(3)
        ]
        expected = T.regress(ExampleSet(v, u))(v_query)
        return all(np.array_equal(np.float32(answer.json()["u"]), expected) for answer in answers)

    with ThreadPoolExecutor(20) as clients:
        assert list(clients.map(one, range(20))) == [True] * 20


def npz(port, path, **arrays):
    return post(
        port, path, content=write_npz(arrays), headers={"content-type": "application/x-npz"}
    )


def test_more_connections_than_there_may_be(monkeypatch):
    """Those too many are told so; when the others end, there is room again."""
    monkeypatch.setattr(start, "CONNECTIONS", 8)
    with serving() as (port, _):
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]
        refused = health(port)
        # Uvicorn's own.
        assert refused.status_code == 503 and refused.headers["content-type"].startswith(
            "text/plain"
        )
        for client in idle:
            client.close()
        wait_until(lambda: health(port).status_code == 200)
