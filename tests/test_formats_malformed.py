"""Damaged files of every format: an error that says what to do, or numbers; never another
exception, a hang, or code that is run."""

import signal
import warnings

import numpy as np
import pytest
from format_samples import WRITERS, damaged, write_npy

from transduce.storage import opened
from transduce.types import TransduceError

SECONDS = 20  # of one damaged file, at most


@pytest.fixture
def alarm():
    """A hang fails the test."""

    def ring(*_):
        raise KeyboardInterrupt("a damaged file took too long")

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.alarm(SECONDS)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def read_all(path):
    """Every variable of a file as numbers or text."""
    with opened(path) as file:
        return {name: np.asarray(file.fetch(name)) for name in file.names}


@pytest.mark.parametrize("name", WRITERS)
def test_fifty_damaged_files(name, tmp_path, alarm):
    path = tmp_path / name
    WRITERS[name](path)
    copies = list(damaged(path.read_bytes(), name))
    assert len(copies) == 50
    refused = []
    for content in copies:
        path.write_bytes(content)
        alarm()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = read_all(path)
            assert all(array.dtype.kind in "fiubcUMT" for array in found.values())
        except TransduceError as error:
            refused.append(str(error))
    assert len(refused) > 15
    for message in refused:
        assert name in message and message.endswith("."), message
        assert any(word in message for word in ("expected", "damaged", "should be")), message


def test_pickles_are_not_opened(tmp_path):
    """A pickle that would write a file when it is opened."""

    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    path = tmp_path / "trap.npy"
    write_npy(path)
    np.save(path, np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(TransduceError, match=r"holds Python objects, which is a pickle.*astype"):
        read_all(path)
    assert not (tmp_path / "sprung").exists()
