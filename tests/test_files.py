"""Where data is looked for, in a source checkout and when installed."""

import shutil
import subprocess
import sys
from pathlib import Path

from transduce import files

ROOT = Path(__file__).parents[1]


def test_a_source_checkout_also_reads_the_data_next_to_it(monkeypatch, tmp_path):
    monkeypatch.delenv("TRANSDUCE_DATA", raising=False)
    assert files.source_checkout() == ROOT
    assert files.data_folders() == [ROOT.parent / "shared" / "data"]
    monkeypatch.setenv("TRANSDUCE_DATA", str(tmp_path))
    assert files.data_folders() == [tmp_path, ROOT.parent / "shared" / "data"]


def test_an_installed_library_reads_no_folder_outside_of_it(tmp_path):
    """The same files without the rest of the repository, as a wheel installs them."""
    package = tmp_path / "site-packages" / "transduce"
    package.mkdir(parents=True)
    for name in ("__init__.py", "files.py", "lazy.py", "types.py"):
        shutil.copy(ROOT / "transduce" / name, package)
    (tmp_path / "shared" / "data").mkdir(parents=True)
    code = (
        "from transduce.files import *; print(source_checkout(), data_folders(), "
        "provenance()['commit'], not_found_in(data_folders()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(package.parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "None [] None not found (TRANSDUCE_DATA is not set)\n"


def test_messages_name_the_folders_that_lack_a_file():
    assert files.not_found_in([Path("a"), Path("b")]) == "not in a or b"
