"""Collectives whose bytes MPI moves (RINGMASTER_BACKEND=mpi), in ranks that mpirun or mpiexec has started."""

import os
import re
import subprocess

import pytest

import harness
import mpirun_test
import optional

LIBRARIES = harness.BIN.parent / "lib"
WORKERS = harness.REPOSITORY / "collectives/python/tests/workers"
PLUGINS = {"mpirun.openmpi": "libringmaster_openmpi.so", "mpiexec.hydra": "libringmaster_mpich.so"}
DIES = """
import os, signal, sys, threading
import torch
import horovod.torch as hvd
hvd.init()
large = torch.ones(1 << 24)
hvd.allreduce(large, op=hvd.Sum, name="before")
if hvd.rank() == 1:
    # In one of the operations, wherever it is by then.
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
try:
    while True:
        hvd.allreduce(large, op=hvd.Sum, name="never ends")
except Exception as error:
    os.write(1, ("rank %d: %s\\n" % (hvd.rank(), error)).encode())
    sys.exit(3)
"""
INIT = """
import os, sys
import horovod.torch as hvd
try:
    hvd.init()
except Exception as error:
    os.write(1, ("init: %s\\n" % error).encode())
    sys.exit(1)
"""
BESIDE = """
import os, torch
FIRST = True
if FIRST:
    from mpi4py import MPI
import horovod.torch as hvd
hvd.init()
if not FIRST:
    from mpi4py import MPI
assert hvd.mpi_enabled() and hvd.mpi_built() and hvd.mpi_threads_supported()
for i in range(20):
    handle = hvd.allreduce_async(torch.ones(100000) * hvd.rank(), op=hvd.Sum)
    theirs = MPI.COMM_WORLD.allreduce(hvd.rank())
    assert hvd.synchronize(handle)[0].item() == theirs == sum(range(hvd.size()))
os.write(1, b"both %d\\n" % hvd.rank())
"""
ALONE = """
import horovod.torch as hvd
hvd.init()
print("world of %d, by mpi: %s" % (hvd.size(), hvd.mpi_enabled()))
"""


@pytest.fixture(params=sorted(PLUGINS))
def launcher(request):
    mpirun_test.need(request.param)
    need_plugin(request.param)
    return [request.param, *mpirun_test.LAUNCHERS[request.param]]


def need_plugin(program):
    if not (LIBRARIES / PLUGINS[program]).exists():
        why = "%s was not built (apt-get install libopenmpi-dev libmpich-dev before cmake)" % PLUGINS[program]
        if os.environ.get("REQUIRE_CLUSTER") == "1":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


def run(command, **env):
    return subprocess.run(command, capture_output=True, text=True, timeout=harness.PATIENCE, stdin=subprocess.DEVNULL,
                          env=mpirun_test.environment(**dict({"RINGMASTER_BACKEND": "mpi"}, **env)))


def script(launcher, ranks, text, tmp_path, **env):
    (tmp_path / "train.py").write_text(text)
    return run([*launcher, str(ranks), mpirun_test.PYTHON, str(tmp_path / "train.py")], **env)


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_type_and_reduction_is_right(launcher, ranks):
    done = run([*launcher, str(ranks), str(harness.BIN / "mpi_collectives"), "2"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"rank \d of %d: \d{3} results are right" % ranks, done.stdout)) == ranks, done.stdout


@pytest.mark.parametrize("worker, ranks", [("operations.py", 2), ("operations.py", 4), ("horovod_names.py", 2), ("gradients.py", 2)])
def test_the_scripts_that_other_backends_pass(launcher, worker, ranks, tmp_path):
    """Groups, process sets, join, Adasum, scaling, and errors that all ranks hear alike."""
    done = run([*launcher, str(ranks), mpirun_test.PYTHON, "-B", str(WORKERS / worker)])
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_job_shuts_down_and_begins_again(launcher, tmp_path):
    done = script(launcher, 3, mpirun_test.TRAIN, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"rank \d of 3", done.stdout)) == 3, done.stdout


def test_a_death_in_an_operation_ends_the_job_and_nobody_hangs(launcher, tmp_path):
    done = script(launcher, 3, DIES, tmp_path)
    assert done.returncode != 0, done.stdout + done.stderr


def test_where_the_launcher_lets_the_others_live_they_hear_who_died(tmp_path):
    mpirun_test.need("mpirun.openmpi")
    need_plugin("mpirun.openmpi")
    done = script(["mpirun.openmpi", "--enable-recovery", *mpirun_test.LAUNCHERS["mpirun.openmpi"]], 3, DIES, tmp_path)
    for rank in (0, 2):
        assert re.search(r"rank %d: rank 1 is gone: .* have no successors" % rank, done.stdout), done.stdout + done.stderr


def test_without_a_plugin_all_ranks_say_what_is_missing(launcher, tmp_path):
    done = script(launcher, 2, INIT, tmp_path, RINGMASTER_MPI_LIBRARY="/nowhere/libringmaster_mpi.so")
    assert done.returncode != 0
    assert re.search(r"init: rm_init: there is no MPI for collectives: none can be loaded: /nowhere/libringmaster_mpi.so: ", done.stdout), done.stdout


def test_a_plugin_of_another_mpi_than_the_launchers_is_refused(tmp_path):
    """MPICH finds no launcher that it knows, so each process is a world of its own to it."""
    for program in PLUGINS:
        mpirun_test.need(program)
        need_plugin(program)
    command = ["mpirun.openmpi", *mpirun_test.LAUNCHERS["mpirun.openmpi"]]
    done = script(command, 2, INIT, tmp_path, RINGMASTER_MPI_LIBRARY=str(LIBRARIES / PLUGINS["mpiexec.hydra"]))
    assert done.returncode != 0
    assert re.search(r"MPICH Version: \S+ calls this process rank 0 of 1, and its launcher rank \d of 2: they don't belong together", done.stdout), done.stdout


def test_where_one_rank_lacks_it_the_others_name_that_rank(launcher, tmp_path):
    """None waits for it in MPI_Init."""
    lacks = "import os\nif '0' in (os.environ.get('OMPI_COMM_WORLD_RANK'), os.environ.get('PMI_RANK')):\n    os.environ['RINGMASTER_MPI_LIBRARY'] = '/nowhere'\n"
    done = script(launcher, 2, lacks + INIT.replace("sys.exit(1)", "pass"), tmp_path)
    assert re.search(r"init: rm_init: there is no MPI", done.stdout), done.stdout + done.stderr
    assert re.search(r"init: rm_init: rank 0 can't use MPI: there is no MPI", done.stdout), done.stdout + done.stderr


def test_a_rank_that_is_asked_for_another_backend_is_named(launcher, tmp_path):
    other = "import os\nif '1' in (os.environ.get('OMPI_COMM_WORLD_RANK'), os.environ.get('PMI_RANK')):\n    os.environ['RINGMASTER_BACKEND'] = 'cpu'\n"
    done = script(launcher, 2, other + INIT.replace("sys.exit(1)", "pass"), tmp_path)
    assert done.stdout.count("RINGMASTER_BACKEND is to be mpi in all ranks or in none: rank 0 has it, rank 1 does not have it") == 2, done.stdout


@pytest.mark.parametrize("first", ["MPI", "ours"])
def test_a_script_may_call_mpi_at_the_same_time(first, tmp_path):
    optional.module("mpi4py")
    mpirun_test.need("mpirun.openmpi")
    need_plugin("mpirun.openmpi")
    command = ["mpirun.openmpi", *mpirun_test.LAUNCHERS["mpirun.openmpi"]]
    done = script(command, 2, BESIDE.replace("FIRST = True", "FIRST = %s" % (first == "MPI")), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"both \d", done.stdout)) == ["both 0", "both 1"]


def test_a_script_that_has_initialised_mpi_for_one_thread_is_refused(tmp_path):
    optional.module("mpi4py")
    mpirun_test.need("mpirun.openmpi")
    need_plugin("mpirun.openmpi")
    command = ["mpirun.openmpi", *mpirun_test.LAUNCHERS["mpirun.openmpi"]]
    done = script(command, 2, "import mpi4py\nmpi4py.rc.thread_level = 'single'\nfrom mpi4py import MPI\n" + INIT, tmp_path)
    assert done.returncode != 0
    assert "initialise it with MPI_Init_thread and MPI_THREAD_MULTIPLE, or call init() first" in done.stdout, done.stdout + done.stderr


def test_one_process_alone_has_no_use_for_mpi_and_says_so(tmp_path):
    (tmp_path / "train.py").write_text(ALONE)
    done = run([mpirun_test.PYTHON, str(tmp_path / "train.py")])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it is a world of one, in which MPI has nothing to do" in done.stderr
    assert "world of 1, by mpi: False" in done.stdout


def test_in_a_job_with_sidecars_it_is_refused(tmp_path):
    (tmp_path / "train.py").write_text(INIT)
    done = run([mpirun_test.PYTHON, str(tmp_path / "train.py")], RINGMASTER_SOCKET=str(tmp_path / "socket"))
    assert done.returncode != 0
    assert "RINGMASTER_BACKEND is 'mpi', allowed is none here: this process belongs to a job" in done.stdout, done.stdout + done.stderr
