"""The virtual environments with TensorFlow that hack/lib/tensorflow makes, for tests that use them."""

import os
import pathlib

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("RINGMASTER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ringmaster"))


def versions():
    """Oldest first."""
    lines = (PROJECT / "hack/lib/tensorflow-versions").read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def python_of(version):
    """Its interpreter. Where it is missing the test is skipped; with REQUIRE_FRAMEWORKS=1, or in CI, it fails."""
    folder = CACHE / ("tensorflow-" + version)
    if not (folder / "made-of").exists():
        missing = "TensorFlow %s is not there: hack/lib/tensorflow installs it" % version
        if os.environ.get("REQUIRE_FRAMEWORKS") == "1" or os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return str(folder / "bin/python")
