"""A script that mpirun or mpiexec starts, with no operator and no sidecar: its ranks find each other by what the launcher tells them."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

import pytest

import harness
import optional

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import netns  # noqa: E402

PYTHON = "/usr/bin/python3"
PACKAGES = str(harness.BIN.parent / "python")
# Open MPI's speaks PMIx, MPICH's PMI.
LAUNCHERS = {"mpirun.openmpi": ["--allow-run-as-root", "--oversubscribe", "-np"], "mpiexec.hydra": ["-n"]}
TRAIN = """
import os, sys
import torch
import horovod.torch as hvd
hvd.init()
rank, size = hvd.rank(), hvd.size()
total = hvd.allreduce(torch.arange(1000.) * (rank + 1), op=hvd.Sum, name="total")
assert torch.equal(total, torch.arange(1000.) * sum(range(1, size + 1))), total
assert hvd.allgather(torch.tensor([rank]), name="ranks").tolist() == list(range(size))
assert hvd.broadcast_object({"from": rank}, root_rank=size - 1) == {"from": size - 1}
# In one piece: launchers mix what their processes write.
say = lambda text: os.write(1, (text + "\\n").encode())
say("rank %d of %d, %d of %d here, host %d of %d" % (rank, size, hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()))
if "DIES" in os.environ and rank == 1:
    os.kill(os.getpid(), 9)
if "DIES" in os.environ:
    hvd.allreduce(torch.ones(1000), name="never")
for again in range(2):
    hvd.shutdown()
    hvd.init()
    assert (hvd.rank(), hvd.size()) == (rank, size)
    assert hvd.allreduce(torch.ones(3), op=hvd.Sum, name="total").tolist() == [size] * 3
hvd.shutdown()
"""
ENDS = """
import os
import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
hvd.init()
rank = hvd.rank()
hvd.shutdown()
if rank == 0:
    try:
        hvd.init()
        os.write(1, b"it has begun again\\n")
    except HorovodInternalError as error:
        os.write(1, b"init: %s\\n" % str(error).encode())
"""
ELASTIC = """
import os
import torch
import horovod.torch as hvd
hvd.init()
model = torch.nn.Linear(1, 1)
state = hvd.elastic.TorchState(model=model, batch=0)

@hvd.elastic.run
def train(state):
    while state.batch < 5:
        state.batch += int(hvd.allreduce(torch.ones(1), op=hvd.Average, name="one").item())
        state.commit()
    return state.batch

os.write(1, b"did %d as %d\\n" % (train(state), hvd.rank()))
"""


def need(program):
    """Skips the test with the reason where there is no such program; with REQUIRE_CLUSTER=1 it fails."""
    if shutil.which(program) is not None:
        return
    why = "%s is not installed (apt-get install openmpi-bin mpich)" % program
    if os.environ.get("REQUIRE_CLUSTER") == "1":
        pytest.fail(why, pytrace=False)
    print("SKIPPED: " + why, file=sys.stderr)
    pytest.skip(why)
WITH_MPI = """
import os, torch
import horovod.torch as hvd
FIRST = True
if FIRST:
    from mpi4py import MPI
hvd.init()
assert hvd.mpi_threads_supported()
if not FIRST:
    from mpi4py import MPI
for i in range(20):
    ours, theirs = hvd.allreduce(torch.ones(1000) * hvd.rank(), op=hvd.Sum), MPI.COMM_WORLD.allreduce(hvd.rank())
    assert ours[0].item() == theirs == sum(range(hvd.size()))
os.write(1, b"both %d %d\\n" % (hvd.rank(), MPI.COMM_WORLD.rank))
"""


@pytest.fixture(params=sorted(LAUNCHERS))
def launcher(request):
    need(request.param)
    return [request.param, *LAUNCHERS[request.param]]


def environment(**more):
    return harness.environment(PYTHONPATH=PACKAGES, OMP_NUM_THREADS="1", **more)


def start(command, script, tmp_path, **env):
    (tmp_path / "train.py").write_text(script)
    return subprocess.run([*command, PYTHON, str(tmp_path / "train.py")], capture_output=True, text=True, timeout=harness.PATIENCE,
                          env=environment(**env), stdin=subprocess.DEVNULL, cwd=tmp_path)


def test_its_processes_are_the_ranks(launcher, tmp_path):
    done = start([*launcher, "3"], TRAIN, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"rank \d of.*", done.stdout)) == ["rank %d of 3, %d of 3 here, host 0 of 1" % (rank, rank) for rank in range(3)]


def test_one_alone_is_a_world_of_one(launcher, tmp_path):
    done = start([*launcher, "1"], TRAIN, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rank 0 of 1, 0 of 1 here, host 0 of 1" in done.stdout


def test_a_death_ends_the_job_and_nobody_hangs(launcher, tmp_path):
    """By the launcher, or by the others' errors (fixed_world_test.cc has their words), whichever is quicker."""
    done = start([*launcher, "3"], TRAIN, tmp_path, DIES="1")
    assert done.returncode != 0, done.stdout + done.stderr
    assert "rank 1 of 3" in done.stdout, done.stdout + done.stderr


def test_where_others_end_instead_of_beginning_again_init_says_so(launcher, tmp_path):
    done = start([*launcher, "2"], ENDS, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"init: rm_init: after the shutdown .* others have ended their processes .*RM_ERR_SHUTDOWN", done.stdout), done.stdout + done.stderr


def test_an_elastic_script_runs_with_the_ranks_that_there_are(launcher, tmp_path):
    done = start([*launcher, "2"], ELASTIC, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"did \d as \d", done.stdout)) == ["did 5 as 0", "did 5 as 1"]
    assert done.stderr.count("none can join") == 1, done.stderr


@pytest.mark.parametrize("first", ["MPI", "ours"])
def test_a_script_may_call_mpi_beside_it(first, tmp_path):
    """Both are clients of one PMIx server, and either may begin."""
    optional.module("mpi4py")
    need("mpirun.openmpi")
    done = start(["mpirun.openmpi", *LAUNCHERS["mpirun.openmpi"], "2"], WITH_MPI.replace("FIRST = True", "FIRST = %s" % (first == "MPI")), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"both \d \d", done.stdout)) == ["both 0 0", "both 1 1"]


WITH_MPICH = """
import ctypes, os, torch
import horovod.torch as hvd
mpi = ctypes.CDLL("libmpich.so.12", mode=os.RTLD_LOCAL)
begins = {"MPI": lambda: mpi.MPI_Init(None, None), "ours": hvd.init}
ends = {"MPI": mpi.MPI_Finalize, "ours": hvd.shutdown}
for one in BEGINS:
    begins[one]()
assert hvd.allreduce(torch.ones(1000) * hvd.rank(), op=hvd.Sum)[0].item() == 1
rank = hvd.rank()
for one in ENDS:
    ends[one]()
os.write(1, b"both %d\\n" % rank)
"""


@pytest.mark.parametrize("begins", [("MPI", "ours"), ("ours", "MPI")])
@pytest.mark.parametrize("ends", [("MPI", "ours"), ("ours", "MPI")])
def test_a_script_may_call_mpich_beside_it(begins, ends, tmp_path):
    """Both speak with one launcher over one socket, and a process takes leave of it once."""
    need("mpiexec.hydra")
    script = WITH_MPICH.replace("BEGINS", repr(begins)).replace("ENDS", repr(ends))
    done = start(["mpiexec.hydra", *LAUNCHERS["mpiexec.hydra"], "2"], script, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"both \d", done.stdout)) == ["both 0", "both 1"]


# MPICH's launcher speaks IPv4 alone, so the machines have such addresses in any case.
@pytest.mark.parametrize("family", [4, 6])
def test_ranks_of_two_machines_find_each_other(family, tmp_path):
    """Machines are network namespaces with host names of their own, which stand for addresses of one family; MPICH's launcher enters
    them where it would call ssh."""
    need("mpiexec.hydra")
    with netns.needed(2, (4, 6)) as network:
        hosts = ["one", "two"]
        names = tmp_path / "hosts"
        names.write_text("".join("%s %s\n" % (network.address(index, family), host) for index, host in enumerate(hosts)))
        enter = tmp_path / "enter"
        enter.write_text("#!/bin/sh\n# called as ssh is: [-x] HOST COMMAND...\n[ \"$1\" = -x ] && shift\nhost=$1; shift\ncase $host in\n"
                         + "".join("%s) net=%s;;\n" % (host, network.spaces[index].path) for index, host in enumerate(hosts))
                         + "esac\nexec nsenter --net=$net -- unshare --uts --mount sh -c \"hostname $host; "
                         "mount --bind %s /etc/hosts; exec $*\"\n" % names)
        enter.chmod(enter.stat().st_mode | stat.S_IXUSR)
        mpiexec = ["mpiexec.hydra", "-iface", "switch", "-launcher-exec", str(enter), "-hosts", ",".join(hosts), "-ppn", "2", "-n", "4"]
        done = start(network.words(None, mpiexec), TRAIN, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"rank \d of.*", done.stdout)) == ["rank %d of 4, %d of 2 here, host %d of 2" % (rank, rank % 2, rank // 2)
                                                             for rank in range(4)], done.stdout
