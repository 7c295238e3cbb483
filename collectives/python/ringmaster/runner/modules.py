"""The modules that stand beside a function's own file, as a zip that Python can import from."""

import io
import os
import sys
import sysconfig
import zipfile

# Of the launch itself, or there in every worker.
_NOT_SENT = ("ringmaster", "horovod", "__pycache__")
# Uncompressed: nobody means so much code, and reading on would take its time.
_MOST_BYTES = 64 << 20


def folder_of(function):
    """The folder in which a function's modules lie; None where it is one of an installed package.

    Of a script it is the script's folder, in a notebook the working directory.
    """
    name = getattr(function, "__module__", None) or "__main__"
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__":
        folder = os.path.dirname(os.path.abspath(file)) if file else os.getcwd()
        return os.getcwd() if _is_installed(folder) else folder  # `python3 -m TOOL`
    if not file:
        return None
    folder = os.path.dirname(os.path.abspath(file))
    levels = name.count(".") + (os.path.basename(file) == "__init__.py")
    for _ in range(levels):
        folder = os.path.dirname(folder)
    return None if _is_installed(folder) else folder


def _is_installed(folder):
    if {"site-packages", "dist-packages"} & set(folder.split(os.sep)):
        return True
    installed = {os.path.realpath(path) for name, path in sysconfig.get_paths().items()
                 if name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return os.path.realpath(folder) in installed


def files_in(folder):
    """{name in the zip: path}: the *.py of the folder and of the packages in it."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.endswith(".py") and os.path.isfile(path):
            found[name] = path
        elif name not in _NOT_SENT and os.path.isfile(os.path.join(path, "__init__.py")):
            found.update(package_files(folder, path))
    return found


def package_files(folder, path):
    """{name in the zip, from `folder` on: path}: the *.py of a package and of those in it."""
    found = {}
    for below, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(".py"):
                file = os.path.join(below, name)
                found[os.path.relpath(file, folder)] = file
    return found


def zipped(files):
    """(the bytes of the zip, {name: bytes in it})"""
    data, sizes, total = io.BytesIO(), {}, 0
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            total += os.path.getsize(path)
            if total > _MOST_BYTES:
                raise MemoryError("%s and its neighbours are more than %d MiB" %
                                  (path, _MOST_BYTES >> 20))
            archive.write(path, name)
            sizes[name] = archive.getinfo(name).compress_size
    return data.getvalue(), sizes
