"""What wheels are made of: versions that agree, folders that are named, stubs that say what there
is.
"""

import importlib
import os
import re

import horovod
import pytest
import stubs

import ringmaster
from ringmaster import _core

PACKAGE = os.path.realpath(os.path.dirname(ringmaster.__file__))
PROJECT = os.path.dirname(PACKAGE)
STUBS = {"ringmaster": "__init__.pyi", "ringmaster.torch": "torch/__init__.pyi",
         "ringmaster.elastic": "elastic.pyi", "ringmaster.torch.elastic": "torch/elastic.pyi",
         "ringmaster.process_sets": "process_sets.pyi", "ringmaster.runner": "runner/__init__.pyi",
         "ringmaster.sampler": "sampler.pyi", "ringmaster.data_loaders": "data_loaders.pyi",
         "ringmaster.torch.distributed": "torch/distributed/__init__.pyi"}
ALIAS_STUBS = ["horovod.common.basics", "horovod.common.elastic", "horovod.common.exceptions",
               "horovod.common.process_sets", "horovod.common.util", "horovod.data",
               "horovod.data.data_loader_base", "horovod.runner", "horovod.runner.launch"]


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
    stubbed = {os.path.relpath(folder, PROJECT).replace(os.sep, ".")
               for folder, _, files in os.walk(PACKAGE) if any(f.endswith(".pyi") for f in files)}
    data = re.findall(r'^"?([\w.]+)"? = \[.*"\*\.pyi"', text_of("pyproject.toml"), re.M)
    assert stubbed == set(data)
    for folder in (PACKAGE, os.path.dirname(horovod.__file__)):
        assert os.path.exists(os.path.join(folder, "py.typed"))


@pytest.mark.parametrize("module", STUBS)
def test_StubsSayWhatThereIs(module):
    stubs.check(module, os.path.join(PACKAGE, STUBS[module]))


@pytest.mark.parametrize("module", ALIAS_STUBS)
def test_StubsOfTheOtherPackageSayWhatThereIs(module):
    path = importlib.import_module(module).__file__
    stubs.check(module, os.path.splitext(path)[0] + ".pyi")


def test_EveryPublicFunctionSaysWhatItDoes():
    import ringmaster.torch
    for module in (ringmaster, ringmaster.torch):
        silent = [name for name in module.__all__ if callable(getattr(module, name))
                  and not getattr(module, name).__doc__]
        assert silent == []
