"""What some tests need besides what all need. Where it is missing they are skipped, saying so; in CI, where it is meant to be there, they fail."""

import importlib
import os

import pytest
import tensorflow_environments


def module(name, for_all=False):
    """The module. `for_all`: said at the top of a file, for all its tests."""
    try:
        return importlib.import_module(name)
    except ImportError:
        _cannot("python3 has no module %s (hack/lib/packages says which package brings it): this was NOT tried" % name, for_all)


def notebook_python():
    """The interpreter that hack/lib/notebook has made for notebooks."""
    folder = tensorflow_environments.CACHE / "notebook"
    if not (folder / "made-of").exists():
        _cannot("no kernel for notebooks is there (hack/lib/notebook installs it): this was NOT tried")
    return str(folder / "bin/python")


def newest_torch_python():
    """The interpreter with the newest PyTorch, which hack/lib/torch has made."""
    folder = tensorflow_environments.CACHE / "torch"
    if not (folder / "made-of").exists():
        _cannot("the newest PyTorch is not there (hack/lib/torch installs it): this was NOT tried")
    return str(folder / "bin/python")


def _cannot(why, for_all=False):
    if os.environ.get("REQUIRE_FRAMEWORKS") == "1" or os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why, allow_module_level=for_all)
