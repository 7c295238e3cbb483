"""The package `horovod`: other names of ringmaster's modules, and none where Horovod itself is
installed.
"""

import os
import pkgutil
import subprocess
import sys

import horovod
import pytest

import ringmaster

FOLDERS = [os.path.dirname(os.path.dirname(module.__file__)) for module in (horovod, ringmaster)]


def python(code, *folders):
    environ = dict(os.environ, PYTHONPATH=os.pathsep.join([*folders, *FOLDERS]))
    return subprocess.run([sys.executable, "-B", "-c", code], env=environ, timeout=60, text=True,
                          capture_output=True)


def test_EveryModuleCanBeImportedAndHasWhatItSays():
    names = [module.name for module in pkgutil.walk_packages(horovod.__path__, "horovod.")
             if not module.name.startswith(("horovod.tensorflow", "horovod.keras"))]
    # Those of TensorFlow and Keras: tensorflow_test.py, where they are installed.
    assert "horovod.torch.mpi_ops" in names and "horovod.common.util" in names
    for name in names:
        module = __import__(name, fromlist=["x"])
        for exported in getattr(module, "__all__", ()):
            assert hasattr(module, exported), "%s.%s" % (name, exported)


def test_ModulesAreThereForScriptsThatImportTheFrameworksAlone():
    ended = python("import horovod.torch as hvd; print(hvd.mpi_ops.Sum is hvd.Sum, "
                   "hvd.functions.broadcast_object is hvd.broadcast_object, "
                   "hvd.compression.Compression is hvd.Compression, "
                   "hvd.optimizer.DistributedOptimizer is hvd.DistributedOptimizer, "
                   "hvd.sync_batch_norm.SyncBatchNorm is hvd.SyncBatchNorm, "
                   "hvd.elastic.state.TorchState is hvd.elastic.TorchState, "
                   "hvd.elastic.state.ObjectState is hvd.elastic.ObjectState, "
                   "hvd.elastic.state.State is hvd.elastic.State, "
                   "hvd.elastic.sampler.ElasticSampler is hvd.elastic.ElasticSampler)")
    assert ended.stdout.split() == ["True"] * 9, ended.stderr


def test_WhereHorovodIsInstalledItRefusesAndSaysHowToChoose(tmp_path):
    installed = tmp_path / "horovod-0.28.1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")
    ended = python("import horovod.torch", str(tmp_path))
    assert ended.returncode == 1
    for says in ("ImportError: Horovod 0.28.1 is installed here", "pip uninstall horovod",
                 "import ringmaster.torch as hvd", "pip uninstall ringmaster-horovod"):
        assert says in ended.stderr, ended.stderr


def test_ItNeedsNoFrameworkAndTellsWhoseApiItHas():
    ended = python(
        "import sys, horovod, horovod.common.util as util; assert 'torch' not in sys.modules; "
        "print(horovod.__version__, util.split_list([1, 2, 3], 2))")
    assert ended.stdout.startswith("0.28.1+ringmaster.%s [[1, 2], [3]]" %
                                   ringmaster.__version__), ended.stderr


def test_AFrameworkThatIsNotThereIsAMissingModule():
    with pytest.raises(ModuleNotFoundError, match="horovod.mxnet"):
        __import__("horovod.mxnet")
    from horovod.common.util import check_extension
    check_extension("horovod.torch", "HOROVOD_WITH_PYTORCH", __file__, "mpi_lib_v2")
    with pytest.raises(ImportError, match="horovod.mxnet: is not there"):
        check_extension("horovod.mxnet")


def test_MpiIsBuiltWhereAPluginForItCanBeLoaded():
    ended = python("import os, horovod.common.util as util; "
                   "os.environ['RINGMASTER_MPI_LIBRARY'] = '/nowhere/plugin.so'; "
                   "from ringmaster import _core; print(util.mpi_built(), "
                   "_core.library().rm_last_error().decode(), _core.library().rm_mpi_enabled())")
    assert ended.stdout.startswith("False there is no MPI for collectives: none can be loaded: "
                                   "/nowhere/plugin.so: "), ended.stdout + ended.stderr
    assert ended.stdout.endswith(" 0\n")


def test_WhatScriptsAskOfHorovodsUtil(monkeypatch):
    from horovod.common import util
    assert util.is_iterable("ab") and util.is_iterable(iter(())) and not util.is_iterable(2)
    assert util.gloo_built(verbose=True) is True and util.mpi_built(True) == ringmaster.mpi_built()
    assert not util.ddl_built(verbose=True) and not util.ccl_built(verbose=True)
    assert util.nccl_built(verbose=True) == ringmaster.nccl_built()
    assert util.gpu_available(ext_base_name="torch", verbose=True) == ringmaster.cuda_built()
    assert util.gpu_available("tensorflow") is False
    assert [n for n in range(-1, 9) if util.num_rank_is_power_2(n)] == [1, 2, 4, 8]
    assert util.split_list([1], 2) == [[1], []] and util.split_list([], 2) == [[], []]
    monkeypatch.setenv("RM_TEST_SET", "before")
    monkeypatch.delenv("RM_TEST_UNSET", raising=False)
    with pytest.raises(ZeroDivisionError):
        with util.env(RM_TEST_SET="in", RM_TEST_UNSET="in", PATH=None):
            assert os.environ["RM_TEST_SET"] == os.environ["RM_TEST_UNSET"] == "in"
            assert "PATH" in os.environ
            1 / 0
    assert os.environ["RM_TEST_SET"] == "before" and "RM_TEST_UNSET" not in os.environ


def test_LaunchingIsRingmasters():
    from horovod.runner import launch
    from ringmaster import runner
    assert horovod.run is runner.run is horovod.runner.run
    with pytest.raises(SystemExit) as ended:
        sys.argv[1:] = ["--version"]
        launch.run_commandline()
    assert ended.value.code == 0


def test_ElasticNamesOfAllFrameworks():
    from horovod.common.elastic import ObjectState, run_fn
    state = ObjectState(bcast_object=None, get_rank=None, batch=3)
    state.batch = 4
    state.restore()
    assert state.batch == 3
    assert run_fn(lambda state: state.batch, reset=None)(state) == 3
    ringmaster.shutdown()
