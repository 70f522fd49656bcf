"""What is installed is complete, and says the same as its sources."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import lithify

PACKAGE = Path(lithify.__file__).parent
MODULE = Path(lithify._lithify.__file__)
REPOSITORY = Path(__file__).resolve().parents[3]


def test_the_version_is_that_of_the_workspace() -> None:
    assert importlib.metadata.version("lithify") == lithify.__version__
    manifest = REPOSITORY / "Cargo.toml"
    if not manifest.exists():
        pytest.skip("there is no repository around the tests")
    found = re.search(r'\[workspace\.package\]\nversion = "([^"]+)"', manifest.read_text())
    assert found is not None and lithify.__version__ == found[1]


def test_types_and_licences_are_there() -> None:
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_lithify.pyi").exists()
    metadata = importlib.metadata.metadata("lithify")
    assert metadata["License-Expression"] == "Apache-2.0 OR MIT"
    licences = {Path(name).name for name in metadata.get_all("License-File") or []}
    codecs = ("libdeflate", "lz4", "snappy", "zlib", "zstd")
    assert licences >= {"LICENSE-APACHE", "LICENSE-MIT", *(f"LICENSE-{name}" for name in codecs)}
    files = importlib.metadata.files("lithify") or []
    shipped = {file.name for file in files if "licenses" in file.parts}
    # An installation for development has them in its sources.
    assert not shipped or shipped >= licences


def test_the_stub_has_every_option() -> None:
    stub = (PACKAGE / "_lithify.pyi").read_text()
    opening = stub[stub.index("class Db(") :]
    opening = opening[: opening.index(") -> Self")]
    for name in (*lithify.DATABASE_OPTIONS, *lithify.FAMILY_OPTIONS):
        assert f" {name}: " in opening, name
    family = stub[stub.index("def column_family(\n        self,\n        name") :]
    family = family[: family.index(") -> ColumnFamily")]
    named = set(re.findall(r"(\w+): ", family))
    assert named - {"name", "create", "options"} == set(lithify.FAMILY_OPTIONS)


def test_everything_public_is_documented() -> None:
    for name in lithify.__all__:
        one = getattr(lithify, name)
        if not inspect.isclass(one) and not callable(one):
            continue
        assert one.__doc__, name
        for member, value in vars(one).items() if inspect.isclass(one) else ():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm")
def test_nothing_of_the_bundled_libraries_is_exported() -> None:
    run = ["nm", "-D", "--defined-only", str(MODULE)]
    lines = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
    assert {line.split()[-1] for line in lines} == {"PyInit__lithify"}
