"""What some tests need besides what all need. Where it is missing they are skipped, saying so; in CI, where it is meant to be there, they fail."""

import importlib
import os
import shutil

import pytest
import tensorflow_environments


def module(name, for_all=False):
    """The module. `for_all`: said at the top of a file, for all its tests."""
    try:
        return importlib.import_module(name)
    except ImportError:
        cannot("python3 has no module %s (hack/lib/packages says which package brings it): this was NOT tried" % name, for_all)


def notebook_python():
    """The interpreter that hack/lib/notebook has made for notebooks."""
    folder = tensorflow_environments.CACHE / "notebook"
    if not (folder / "made-of").exists():
        cannot("no kernel for notebooks is there (hack/lib/notebook installs it): this was NOT tried")
    return str(folder / "bin/python")


def newest_torch_python():
    """The interpreter with the newest PyTorch, which hack/lib/torch has made."""
    folder = tensorflow_environments.CACHE / "torch"
    if not (folder / "made-of").exists():
        cannot("the newest PyTorch is not there (hack/lib/torch installs it): this was NOT tried")
    return str(folder / "bin/python")


def program(name, package=None):
    """Its path. hack/test installs the packages of its tests, so where it is required it can be there."""
    return shutil.which(name) or cannot("there is no %s (Debian package %s): this was NOT tried" % (name, package or name))


def cannot(why, for_all=False):
    """For what hack/test installs. What depends on the machine alone, such as its memory or its kernel, is a plain skip."""
    if os.environ.get("REQUIRE_FRAMEWORKS") == "1" or os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why, allow_module_level=for_all)
