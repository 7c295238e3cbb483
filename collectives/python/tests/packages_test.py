"""What wheels are made of: versions that agree, folders that are named, stubs that say what there
is.
"""

import ast
import importlib
import inspect
import os
import re

import horovod
import pytest

import ringmaster
from ringmaster import _core

PACKAGE = os.path.realpath(os.path.dirname(ringmaster.__file__))
PROJECT = os.path.dirname(PACKAGE)
STUBS = {"ringmaster": "__init__.pyi", "ringmaster.torch": "torch/__init__.pyi",
         "ringmaster.elastic": "elastic.pyi", "ringmaster.torch.elastic": "torch/elastic.pyi",
         "ringmaster.sampler": "sampler.pyi"}


def text_of(*names):
    with open(os.path.join(PROJECT, *names)) as file:
        return file.read()


def test_EveryVersionIsTheLibrarys():
    version = ringmaster.__version__
    assert _core.library().rm_version().decode() == version
    alias = text_of("alias", "pyproject.toml")
    assert 'version = "%s"' % version in alias and '"ringmaster == %s"' % version in alias
    assert horovod.__version__.endswith("+ringmaster." + version)


def test_EveryFolderOfThePackageIsInTheWheel():
    folders = {os.path.relpath(folder, PROJECT).replace(os.sep, ".")
               for folder, _, files in os.walk(PACKAGE) if "__init__.py" in files}
    named = re.search(r"^packages = \[(.*)\]$", text_of("pyproject.toml"), re.M)[1]
    assert folders == set(re.findall(r'"([\w.]+)"', named))
    for folder in (PACKAGE, os.path.dirname(horovod.__file__)):
        assert os.path.exists(os.path.join(folder, "py.typed"))


def declared_in(stub):
    """Functions as {name: names of arguments}, classes as {name: the same of methods}, names."""

    def functions_of(body):
        found = {}
        for node in body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                arguments = node.args
                every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
                found[node.name] = [argument.arg for argument in every]
        return found

    body = ast.parse(text_of("ringmaster", stub)).body
    classes = {
        node.name: functions_of(node.body)
        for node in body if isinstance(node, ast.ClassDef)
    }
    names = set(classes) | {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
    names |= {node.name for node in body if isinstance(node, ast.FunctionDef)}
    for node in body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
    return functions_of(body), classes, names


def arguments_of(function):
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind not in kinds]


@pytest.mark.parametrize("module", STUBS)
def test_StubsSayWhatThereIs(module):
    functions, classes, names = declared_in(STUBS[module])
    found = importlib.import_module(module)
    assert [name for name in getattr(found, "__all__", ()) if name not in names] == []
    for name, arguments in functions.items():
        assert arguments_of(getattr(found, name)) == arguments, name
    for name in classes:
        for method, arguments in classes[name].items():
            if hasattr(found, name) and not method.startswith("__") or method == "__init__":
                assert arguments_of(getattr(getattr(found, name),
                                            method)) == arguments, (name, method)


def test_EveryPublicFunctionSaysWhatItDoes():
    import ringmaster.torch
    for module in (ringmaster, ringmaster.torch):
        silent = [name for name in module.__all__ if callable(getattr(module, name))
                  and not getattr(module, name).__doc__]
        assert silent == []
