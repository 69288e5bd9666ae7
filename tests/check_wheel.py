"""Build the wheel and use it as an installed library:  make wheel-test

The wheel goes into an environment of its own, outside the repository. That environment finds torch
and the other dependencies in the one that runs this file, so nothing is downloaded. There the first
Python example of the README runs, and `transduce regress` gives the same answers. The sdist must
build a wheel with the same files."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 45e6  # bytes
AROUND_THE_EXAMPLE = """
import sys
import numpy as np
import transduce
from transduce.files import source_checkout

assert transduce.__file__.startswith(sys.prefix), transduce.__file__
assert source_checkout() is None
{example}
assert u_hat.shape == (324, 24)
np.savez("pairs.npz", v=v.loc[examples], u=u.loc[examples], x=np.arange(24.0))
np.savez("v.npz", v=query)
np.savez("expected.npz", u=u_hat)
"""
REGRESS = "regress --examples pairs.npz --queries v.npz --out u.npz"
COMPARE = """
import numpy as np
u, expected = (np.load(name)["u"] for name in ("u.npz", "expected.npz"))
np.testing.assert_allclose(u, expected, atol=1e-5)
"""
WITHOUT_THE_REPOSITORY = """
import transduce
for name in ("adr-softmax", "burgers-softmax", "images-softmax"):
    try:
        transduce.Transducer.from_pretrained(name)
    except transduce.TransduceError as error:
        assert "paper/pretrained" in str(error), error
    else:
        raise AssertionError(f"{name} is in the wheel")
"""


def build(source: Path, out: Path, *targets: str) -> None:
    """Build the sdist and the wheel of `source`, or the targets given, into `out`."""
    options = [option for target in targets for option in ("-t", target)]
    run(sys.executable, "-m", "hatchling", "build", "-d", str(out), *options, cwd=source)


def run(*command: str, cwd: Path, code: int = 0) -> str:
    """What a command prints; raises if its exit code is not `code`."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != code:
        raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stderr}")
    return done.stdout + done.stderr


def files_of(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def install(wheel: Path, folder: Path) -> Path:
    """The folder of programs of a new environment with the wheel in it.

    A .pth file adds the packages of this environment after the new one's own. Python does not read
    the .pth files of folders that are added so, and thus not that of an editable install."""
    run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=folder.parent)
    (python,) = folder.glob("bin/python")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps"]
    run(*pip, str(wheel), cwd=folder.parent)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def check_files(wheel: Path, folder: Path) -> None:
    """The wheel is small, holds the package alone, and can be built from the sdist."""
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.1f} MB")
    if size > LARGEST:
        raise SystemExit(f"the wheel has {size / 1e6:.1f} MB; at most {LARGEST / 1e6:.0f}")
    outside = {name for name in files_of(wheel) if not name.startswith("transduce/")}
    if outside:
        raise SystemExit(f"the wheel holds files outside transduce/: {sorted(outside)}")
    (sdist,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    (source,) = (folder / "sdist").iterdir()
    build(source, folder / "rebuilt", "wheel")
    (rebuilt,) = (folder / "rebuilt").glob("*.whl")
    if files_of(rebuilt) != files_of(wheel):
        raise SystemExit(f"the sdist lacks or adds {files_of(rebuilt) ^ files_of(wheel)}")


def check_use(programs: Path, folder: Path) -> None:
    """The README's first Python example, `transduce regress`, and the weights that are absent."""
    readme = (ROOT / "README.md").read_text()
    example = re.search(r"^```python\n(.*?)^```$", readme, re.S | re.M)[1]
    python = str(programs / "python")
    run(python, "-c", AROUND_THE_EXAMPLE.format(example=example), cwd=folder)
    print("the README's first example runs")
    print(run(str(programs / "transduce"), *REGRESS.split(), cwd=folder).strip())
    run(python, "-c", COMPARE, cwd=folder)
    if (ROOT / "paper" / "pretrained").is_dir():
        run(python, "-c", WITHOUT_THE_REPOSITORY, cwd=folder)
        line = run(str(programs / "transduce"), "reproduce", "adr", cwd=folder, code=2)
        assert line.startswith("transduce: error: ") and "Clone the repository" in line, line
        print("without the repository, the paper's weights and experiments say where they are")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(ROOT, folder / "dist")
        (wheel,) = (folder / "dist").glob("*.whl")
        check_files(wheel, folder)
        programs = install(wheel, folder / "environment")
        (folder / "work").mkdir()
        check_use(programs, folder / "work")


if __name__ == "__main__":
    main()
