"""Finds the `ringmaster` program, which starts workers and looks after them."""

import os
import shutil

from ringmaster.runner.errors import ProgramMissing

NAME = "ringmaster"


def find(environ=None, package=None):
    """The path of the program. The first that there is of:

    1. RINGMASTER_BIN: the program, or the folder that it lies in; if set, the only place
    2. the folder `bin` of the installation, or of the build, that this package belongs to
    3. PATH

    ProgramMissing, with every place that was tried, where there is none.
    """
    environ = os.environ if environ is None else environ
    named = environ.get("RINGMASTER_BIN")
    if named:
        path = os.path.join(named, NAME) if os.path.isdir(named) else named
        if _is_program(path):
            return os.path.abspath(path)
        raise ProgramMissing("RINGMASTER_BIN is %s, and %s is no program" % (named, path))
    tried = []
    for folder in _beside(package or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))):
        path = os.path.join(folder, NAME)
        if _is_program(path):
            return path
        tried.append(path)
    on_path = shutil.which(NAME, path=environ.get("PATH"))
    if on_path:
        return os.path.abspath(on_path)
    raise ProgramMissing(
        "the program `ringmaster`, which starts the workers, was not found; install it (docs/"
        "install.md), put it on PATH, or name it with RINGMASTER_BIN. Tried: %s and PATH (%s)" %
        (", ".join(tried), environ.get("PATH", "")))


def _beside(package):
    """Build: build/release/{python/ringmaster,bin}. Installed: PREFIX/{lib/ringmaster/python/
    ringmaster,bin}, on Debian with the architecture's folder below lib.
    """
    above = os.path.dirname(package)
    return [os.path.normpath(os.path.join(above, *[".."] * levels, "bin")) for levels in (1, 3, 4)]


def _is_program(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)
