"""One small file of pairs for each format that others write, and damaged copies of it."""

import zlib

import h5py
import numpy as np
import pandas as pd
import rdata
import xarray as xr
from scipy.io import savemat

RNG = np.random.default_rng(0)
X = np.array([400.0, 402, 405, 409, 414, 420, 427, 435])
V, U = RNG.normal(size=(6, 8)), RNG.normal(size=(6, 8))
HEADER = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Jan  1 00:00:00 2024 HDF5 schema"


def frame(v=V, u=U):
    """A wide table."""
    parts = {"v": v, "u": u}
    return pd.concat(
        [pd.DataFrame(f, columns=[f"{name}_{x:g}" for x in X]) for name, f in parts.items()], axis=1
    )


def write_csv(path, v=V, u=U):
    frame(v, u).to_csv(path, index=False)


def write_tsv(path, v=V, u=U):
    frame(v, u).to_csv(path, index=False, sep="\t")


def write_txt(path, v=V, u=U):
    frame(v, u).to_csv(path, index=False, sep=" ")


def write_mat(path, v=V, u=U):
    savemat(path, {"v": v, "u": u, "x": X}, do_compression=True)


def write_plain_mat(path, v=V, u=U):
    savemat(path, {"data": {"v": v, "u": u, "about": "text"}, "x": X})


def write_mat_73(path, v=V, u=U):
    """As MATLAB writes it: a header of 512 bytes, axes reversed, the class of each variable."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in {"v": v, "u": u, "x": X[None]}.items():
            file.create_dataset(name, data=array.T)
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as file:
        file.write(HEADER.ljust(124) + b"\x00\x02IM")


def write_npy(path, v=V, u=U):
    np.save(path, v)


def write_parquet(path, v=V, u=U):
    frame(v, u).to_parquet(path)


def write_rda(path, v=V, u=U):
    rdata.write_rda(path, {"v": v, "u": u, "x": X})


def write_plain_rda(path, v=V, u=U):
    rdata.write_rda(path, {"v": v, "u": u, "x": X}, compression=None)


def write_rds(path, v=V, u=U):
    rdata.write_rds(path, {"v": v, "u": u, "x": X})


def write_npz(path, v=V, u=U):
    np.savez(path, v=v, u=u, x=X)


def write_nc(path, v=V, u=U):
    """NetCDF 3."""
    arrays = {"v": (("n", "x"), v), "u": (("n", "x"), u)}
    xr.Dataset(arrays, {"x": X} if v.shape[1] == len(X) else {}).to_netcdf(path, engine="scipy")


def write_h5(path, v=V, u=U):
    with h5py.File(path, "w") as file:
        file["v"], file["u"], file["x"] = v, u, X


WRITERS = {  # a line for each reader
    "pairs.csv": write_csv,
    "pairs.tsv": write_tsv,
    "pairs.txt": write_txt,
    "pairs.mat": write_mat,
    "pairs_plain.mat": write_plain_mat,
    "pairs_73.mat": write_mat_73,
    "v.npy": write_npy,
    "pairs.parquet": write_parquet,
    "pairs.rda": write_rda,
    "pairs_plain.rda": write_plain_rda,
    "pairs.rds": write_rds,
    "pairs.npz": write_npz,
    "pairs.nc": write_nc,
    "pairs.h5": write_h5,
}


PAIRS_OF = [name for name in WRITERS if name.startswith("pairs")]


def damaged(content, name):
    """50 damaged copies of a file, the same in each run."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    size = len(content)
    for cut in [0, 1, 4, 9, *rng.integers(10, size, 6)]:
        yield content[:cut]
    for flips in [1] * 12 + [8] * 8:
        bits = np.frombuffer(content, np.uint8).copy()
        bits[rng.integers(0, size, flips)] ^= 1 << rng.integers(0, 8, flips).astype(np.uint8)
        yield bits.tobytes()
    for keep in (0, 8, 128, size // 2):  # the right beginning, and then noise
        yield content[:keep] + rng.bytes(size - min(keep, size))
    for start in rng.integers(0, size, 4):  # a piece is missing
        yield content[:start] + content[start + 1 + int(rng.integers(60)) :]
    for start in rng.integers(0, size, 4):  # large numbers in place of lengths
        yield content[:start] + b"\xff\xff\xff\x7f" + content[start + 4 :]
    yield from (content + content, content[::-1], b"\0" * size, content[:40] * 30)
    yield from (b"v,u\n1,2,3\n4\n", b'{"v": [1, 2]}', b"\x80\x04\x95cos\nsystem\n", b"text\n" * 9)
