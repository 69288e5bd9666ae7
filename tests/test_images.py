"""IDX files, and tasks of permuted images: what they hold, what they never hold, and bad files."""

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pooch
import pytest
import torch

from transduce import TransduceError
from transduce.families import LabelledImages, PermutedImages, image_files, images, load_images
from transduce.random_fields import generator_for


def idx(array):
    return (
        struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        + array.astype(np.uint8).tobytes()
    )


@pytest.fixture
def files(tmp_path):
    """Thirty images of 28 x 28, as IDX."""
    pixels = np.random.default_rng(0).integers(256, size=(30, 28, 28))
    (tmp_path / "images").write_bytes(idx(pixels))
    (tmp_path / "labels.gz").write_bytes(gzip.compress(idx(np.arange(30) % 10)))
    return tmp_path, pixels


@pytest.fixture
def data(files):
    return LabelledImages.from_idx(files[0] / "images", files[0] / "labels.gz", "made")


@pytest.fixture
def numbered():
    """Pixels that name their own place, modulo 256, so that an order can be read off."""
    return LabelledImages(
        (torch.arange(784) % 256).to(torch.uint8).expand(40, -1), torch.arange(40) % 10
    )


def test_idx_files_hold_what_was_written(files, data):
    assert (
        len(data) == 30
        and data.images.shape == (30, 784)
        and repr(data) == "LabelledImages(made, 30 of 784 pixels)"
    )
    assert (data.images.numpy() == files[1].reshape(30, 784)).all() and data.labels.tolist() == [
        i % 10 for i in range(30)
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not an IDX file"),
        (b"PNG file, say", "is not an IDX file"),
        (b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", "is not an IDX file of unsigned bytes"),
        (b"\0\0\x08\x03\0\0", "less than a head: it is truncated"),
        (
            idx(np.zeros((2, 3, 3)))[:-1],
            "holds 17 values, where its head says 2 x 3 x 3: it is truncated",
        ),
        (idx(np.zeros((2, 3, 3))) + b"\0", "holds 19 values"),
    ],
)
def test_bad_idx_files_say_what_is_wrong(tmp_path, content, said):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(TransduceError, match=said):
        image_files.read_idx(tmp_path / "a")


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(TransduceError, match="there is no file"):
        image_files.read_idx(tmp_path / "none")
    whole = gzip.compress(idx(np.arange(18).reshape(2, 3, 3)))
    for content in (whole[:-9], whole[:15] + b"\xff\xff" + whole[17:], b"not gzip"):
        (tmp_path / "bad.gz").write_bytes(content)
        with pytest.raises(TransduceError, match="damaged or truncated"):
            image_files.read_idx(tmp_path / "bad.gz")


def test_sets_that_do_not_fit(files):
    folder, _ = files
    with pytest.raises(TransduceError, match="Give the images first"):
        LabelledImages.from_idx(folder / "labels.gz", folder / "images")
    (folder / "oblong").write_bytes(idx(np.zeros((30, 14, 56))))
    with pytest.raises(TransduceError, match="expected square images"):
        LabelledImages.from_idx(folder / "oblong", folder / "labels.gz")
    bytes_of = torch.zeros(3, 9, dtype=torch.uint8)
    for pixels, labels, said in (
        (bytes_of[:, :8], torch.tensor([0, 1, 2]), "images of 8 pixels; expected square"),
        (bytes_of, torch.tensor([0, 1, 10]), "labels from 0 to 10"),
    ):
        with pytest.raises(TransduceError, match=said):
            LabelledImages(pixels, labels)


def test_images_are_resized_from_rows_and_from_planes():
    planes = np.random.default_rng(0).random((3, 8, 8))
    rows = image_files.resized(planes.reshape(3, 64))
    assert rows.shape == (3, 784) and np.array_equal(image_files.resized(planes), rows)
    assert np.allclose(image_files.resized(planes, side=8), planes.reshape(3, 64))
    for shape in ((), (64,), (3, 60), (3, 8, 9), (3, 8, 8, 1), (3, 0)):
        with pytest.raises(
            TransduceError, match=r"expected square ones, like \(n, 64\) or \(n, 8, 8\)"
        ):
            image_files.resized(np.zeros(shape))


def test_files_are_found_where_the_environment_says(files, monkeypatch):
    folder, pixels = files
    (folder / "mnist").mkdir()
    names = image_files.FILES["test"]
    (folder / "mnist" / names[0]).write_bytes(gzip.compress(idx(pixels)))
    (folder / "mnist" / names[1]).write_bytes((folder / "labels.gz").read_bytes())
    monkeypatch.setenv("TRANSDUCE_DATA", str(folder))
    assert len(load_images("mnist", "test")) == 30
    with pytest.raises(TransduceError, match="no images are called 'cifar'"):
        load_images("cifar", "test")


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No folder has the files, and what is published is in tmp_path / "published"."""
    monkeypatch.setenv("TRANSDUCE_DATA", str(tmp_path))
    monkeypatch.setattr("transduce.files.source_checkout", lambda: None)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)

    def fetch(url, output_file, pooch):
        Path(output_file).write_bytes((tmp_path / "published" / url.rsplit("/", 1)[1]).read_bytes())

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda url, progressbar=False: fetch)


def publish(tmp_path, monkeypatch, right=True):
    (tmp_path / "published").mkdir()
    for file, array in zip(
        image_files.FILES["test"], (np.zeros((3, 28, 28)), np.arange(3)), strict=True
    ):
        content = gzip.compress(idx(array))
        (tmp_path / "published" / file).write_bytes(content)
        monkeypatch.setitem(
            image_files.SHA256,
            f"mnist/{file}",
            hashlib.sha256(content if right else b"other").hexdigest(),
        )


@pytest.mark.usefixtures("nowhere")
def test_files_that_are_nowhere_are_fetched_once(tmp_path, monkeypatch):
    publish(tmp_path, monkeypatch)
    assert len(load_images("mnist", "test")) == 3
    for file in (tmp_path / "published").glob("*"):
        file.unlink()
    assert len(load_images("mnist", "test")) == 3  # from the cache


@pytest.mark.usefixtures("nowhere")
def test_other_bytes_than_were_published_are_not_taken(tmp_path, monkeypatch):
    publish(tmp_path, monkeypatch, right=False)
    with pytest.raises(
        TransduceError,
        match=(
            r"ValueError: SHA256 hash .*set TRANSDUCE_DATA to a folder that has "
            r"mnist/t10k-images"
        ),
    ):
        load_images("mnist", "test")
    assert not list((tmp_path / "cache").rglob("*.gz"))


@pytest.mark.usefixtures("nowhere")
def test_a_file_that_cannot_be_fetched_is_said_to_be_nowhere():
    with pytest.raises(
        TransduceError,
        match=(
            r"fetching it from .* failed .*set TRANSDUCE_DATA to a folder that has "
            r"mnist/train-images"
        ),
    ):
        load_images("mnist", "train")
    with pytest.raises(TransduceError, match="its checksum is not known"):
        load_images("kmnist", "train")


def test_examples_and_queries_come_from_all_over_the_set():
    """In a task of most images, place says nothing about number."""
    chosen = torch.stack(
        [
            torch.from_numpy(images._distinct(400, 300, generator_for("train", seed)))
            for seed in range(40)
        ]
    ).double()
    assert 180 < chosen[:, :50].mean() < 220 and 180 < chosen[:, -50:].mean() < 220


@pytest.mark.parametrize("block", [1, 2, 4, 7])
def test_blocks_change_places_whole(numbered, block):
    task = PermutedImages(numbered, (block,)).sample_task(3, 2, generator_for("train", block))
    order = images.block_order(28, block, generator_for("train", 5)).reshape(28, 28)
    assert sorted(order.flatten().tolist()) == list(range(784)) and not torch.equal(
        order.flatten(), torch.arange(784)
    )
    for corner in (order[:block, :block], order[-block:, -block:]):
        assert torch.equal(corner - corner[0, 0], torch.arange(784).reshape(28, 28)[:block, :block])
    assert torch.equal(task.examples.v[0], task.queries.v[1])  # one order for all of a task
    assert not torch.equal(task.examples.v[0], numbered.images[0] / 255)


def test_the_old_order_is_never_drawn():
    for seed in range(50):
        assert not torch.equal(
            images.block_order(4, 2, generator_for("train", seed)), torch.arange(16)
        )


def test_tasks_are_distinct_images_with_their_classes_renamed(data):
    task = PermutedImages(data, (7,)).sample_task(20, 10, generator_for("train", 1))
    assert task.examples.v.shape == (20, 784) and task.queries.u.shape == (10, 10)
    sums = torch.cat([task.examples.v, task.queries.v]).sort(1).values
    assert len({tuple(row.tolist()) for row in sums}) == 30
    originals = data.images.sort(1).values / 255
    which = (sums[:, None] == originals).all(2).int().argmax(1)
    classes = torch.cat([task.examples.u, task.queries.u]).argmax(1)
    renamed = {(int(data.labels[i]), int(c)) for i, c in zip(which, classes, strict=True)}
    assert len(renamed) == 10 == len({new for _, new in renamed}) and any(
        old != new for old, new in renamed
    )


def test_without_blocks_images_are_as_they_are(data):
    task = PermutedImages(data, ()).sample_task(29, 1, generator_for("test", 1))
    order = [
        int((data.images == v).all(1).int().argmax())
        for v in (task.examples.v * 255).round().to(torch.uint8)
    ]
    assert len(set(order)) == 29 and task.examples.u.argmax(1).tolist() == [i % 10 for i in order]


def test_what_cannot_be_drawn_is_said(data):
    with pytest.raises(TransduceError, match="20 examples and 11 queries were asked of 30 images"):
        PermutedImages(data).sample_task(20, 11, generator_for("train", 0))
    for blocks in ((3,), (28,), (0,)):
        with pytest.raises(TransduceError, match="expected sides of blocks that divide 28"):
            PermutedImages(data, blocks)
