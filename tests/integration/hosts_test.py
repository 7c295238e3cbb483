"""Jobs on several machines by ssh: network namespaces with a real sshd each (tests/support/ssh_hosts.py)."""
import os
import pathlib
import re
import signal
import sys

import pytest

import harness
from elastic_test import check, read_logs
from harness import Run, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import ssh_hosts  # noqa: E402

PYTHON = "/usr/bin/python3"
TRAIN = """
import os, socket
import torch
import horovod.torch as hvd
hvd.init()
total = hvd.allreduce(torch.arange(1000.) * (hvd.rank() + 1), op=hvd.Sum, name="total")
assert torch.equal(total, torch.arange(1000.) * sum(range(1, hvd.size() + 1))), total
print("rank %d of %d, %d of %d here, host %d of %d, %s at %s" % (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(),
      hvd.cross_size(), os.environ["TOLD"], os.environ["RINGMASTER_BIND_WORKER"]), flush=True)
hvd.shutdown()
"""


@pytest.fixture
def hosts():
    why = ssh_hosts.missing()
    if why and os.environ.get("REQUIRE_CLUSTER") == "1":
        pytest.fail("REQUIRE_CLUSTER=1, and " + why, pytrace=False)
    if why:
        print("SKIPPED: " + why, file=sys.stderr)
        pytest.skip(why)
    with ssh_hosts.SshHosts(harness.BIN, 2) as hosts:
        yield hosts


def test_a_command_runs_on_two_machines(hosts, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    with Run("-H", "a:2,b:2", "--", PYTHON, "train.py", program=hosts.program, cwd=tmp_path, TOLD="told", OMP_NUM_THREADS="1") as run:
        assert run.wait() == 0, run.text()
        said = sorted(re.findall(r"\[\d\] (rank .*)", run.text()))
        places = [(0, "a"), (0, "a"), (1, "b"), (1, "b")]
        if "host 0 of 2, told at " + hosts.address(hosts.index("b")) in run.text():
            places = [(0, "b"), (0, "b"), (1, "a"), (1, "a")]
        assert said == ["rank %d of 4, %d of 2 here, host %d of 2, told at %s" % (rank, rank % 2, host, hosts.address(hosts.index(name)))
                        for rank, (host, name) in enumerate(places)], run.text()
        assert "bringing the programs to a, b" in run.text()
