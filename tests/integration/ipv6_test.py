"""Pods whose addresses are IPv6 addresses, alone or beside IPv4 ones: what sidecars, workers and the program that started them say
to each other finds its way, before and after a death and a cut."""
import sys

import pytest

import harness
import netns
from elastic_test import Job
from network_test import another, goes_on_without, together_again
from pod_network import PodNetwork

PODS = 3
# The interface says where a worker listens, not a variable with the pod's address.
BY_INTERFACE = "; unset RINGMASTER_BIND_WORKER; export RINGMASTER_SOCKET_IFNAME=eth0"
FAMILIES = {"only IPv6": (6,), "IPv6 first": (6, 4), "IPv4 first": (4, 6)}


@pytest.fixture(params=sorted(FAMILIES))
def families(request):
    netns.needed(1)
    return FAMILIES[request.param]


def listens_at(network, pod):
    """The addresses at which the worker of a pod listens for others."""
    return {address.rsplit(":", 1)[0].strip("[]") for address, _ in network.sockets(pod, "state", "listening")}


@pytest.mark.parametrize("more", ["", BY_INTERFACE], ids=["by address", "by interface"])
def test_a_job_loses_a_worker_and_a_pod_and_is_whole_again(write, tmp_path, families, more):
    with PodNetwork(harness.BIN, PODS + 1, more, families) as network, Job(write, tmp_path, PODS, network=network) as job:
        epoch = job.world(PODS)
        for pod in range(PODS):
            assert listens_at(network, pod) == {network.address(pod)}
        job.run.do("kill", "job-worker-1", "--worker", 0)
        epoch = job.world(PODS, epoch + 1)
        job.run.do("drain", "job-worker-2")
        job.world(PODS, epoch)
        job.finish()


@pytest.mark.parametrize("encryption", ["On", "Off"])
def test_a_pod_that_was_cut_off_is_back_when_its_link_is(write, tmp_path, families, encryption):
    with PodNetwork(harness.BIN, 2 * PODS, families=families) as network, \
            Job(write, tmp_path, PODS, network=network, collectives={"encryption": encryption}) as job:
        epoch = job.world(PODS)
        network.cut(another(job))
        goes_on_without(job, epoch)
        network.heal()
        together_again(job, PODS)
        job.finish()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
