"""Finds the `ringmaster` program, which starts workers and looks after them."""

import os
import platform
import shutil

from ringmaster.runner.errors import ProgramMissing

NAME = "ringmaster"
# What hack/wheel adds to the package: `bin` and `lib` in the wheel that brings the programs; in
# each wheel a file `glibc` with the oldest glibc that the programs run with, such as "2.36".
BROUGHT_ALONG = "_programs"


def find(environ=None, package=None, glibc=None):
    """The path of the program. The first that there is of:

    1. RINGMASTER_BIN: the program, or the folder that it lies in; if set, the only place
    2. what the wheel has brought along, if this machine's glibc is new enough
    3. the folder `bin` of the installation, or of the build, that this package belongs to
    4. PATH

    At 3 and 4 scripts don't count: `ringmaster` may be the one that pip has made, which asks here.
    `glibc`: this machine's version, such as "2.36"; None: ask the machine.
    ProgramMissing, with every place that was tried and why, where there is none.
    """
    environ = os.environ if environ is None else environ
    package = package or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    named = environ.get("RINGMASTER_BIN")
    if named:
        return _named(os.path.join(named, NAME) if os.path.isdir(named) else named, named)
    needs = _needed_glibc(package)
    has = _glibc() if glibc is None else glibc
    brought = os.path.join(package, BROUGHT_ALONG, "bin", NAME)
    if _is_program(brought) and not _is_older(has, needs):
        return brought
    tried = [os.path.join(folder, NAME) for folder in _beside(package)]
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    for path in tried + [os.path.join(folder, NAME) for folder in folders if folder]:
        if _is_program(path) and not _is_script(path):
            return os.path.abspath(path)
    raise ProgramMissing(_advice(needs, has) +
                         " Tried: %s and PATH (%s)" % (", ".join(tried), environ.get("PATH", "")))


def _named(path, value):
    if not _is_program(path):
        raise ProgramMissing("RINGMASTER_BIN is %s, and %s is no program" % (value, path))
    if _is_script(path) and b"ringmaster.runner" in _beginning(path):
        raise ProgramMissing("RINGMASTER_BIN is %s, and %s is the script that pip has made, which "
                             "asks RINGMASTER_BIN for the program; name the program itself, or "
                             "leave the variable out" % (value, path))
    return os.path.abspath(path)


def _advice(needs, has):
    if not needs:
        return ("the program `ringmaster`, which starts the workers, was not found; install it "
                "(docs/install.md), put it on PATH, or name it with RINGMASTER_BIN.")
    if _is_older(has, needs):
        return ("the program `ringmaster`, which starts the workers, needs glibc %s or later, and "
                "this machine has %s. The Python package and its library work here, as they do "
                "in the pods of a HorovodJob. To start workers here, take a machine or a container "
                "with a newer glibc (`ldd --version` tells), or build the program here "
                "(docs/install.md) and name its folder with RINGMASTER_BIN."
                % (needs, "glibc " + has if has else "another C library"))
    return ("the program `ringmaster`, which starts the workers, is not in the wheel that is "
            "installed, and this machine's glibc (%s) is new enough for the wheel that brings it "
            "(%s or later). Install that one (pip 20.3 or later chooses it by itself), put the "
            "program on PATH, or name it with RINGMASTER_BIN." % (has, needs))


def _needed_glibc(package):
    try:
        with open(os.path.join(package, BROUGHT_ALONG, "glibc"), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _glibc():
    """This machine's version of glibc; empty where its C library is another one."""
    name, version = platform.libc_ver()
    return version if name == "glibc" else ""


def _is_older(has, needs):
    def numbers(version):
        return [int(part) for part in version.split(".")] if version else []

    return numbers(has) < numbers(needs)


def _beside(package):
    """Build: build/release/{python/ringmaster,bin}. Installed: PREFIX/{lib/ringmaster/python/
    ringmaster,bin}, on Debian with the architecture's folder below lib.
    """
    above = os.path.dirname(package)
    return [os.path.normpath(os.path.join(above, *[".."] * levels, "bin")) for levels in (1, 3, 4)]


def _is_program(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_script(path):
    return _beginning(path).startswith(b"#!")


def _beginning(path):
    try:
        with open(path, "rb") as file:
            return file.read(4096)
    except OSError:
        return b""
