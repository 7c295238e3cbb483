"""Two versions meet: libraries of one beside sidecars of another, where the job trains through a death and `ringmaster why` names the versions; and
the command of one with a run of the other.

The other version is this tree as 0.0.9 (targets other_build and other_collectives), because there is no release before this one. RINGMASTER_OTHER_BIN and
RINGMASTER_OTHER_LIBRARY name a folder with a real one's ringmaster and ringmaster-sidecar, and its libringmaster.so.
"""

import json
import os
import pathlib
import re
import shutil
import sys

import pytest

from harness import BIN, REPOSITORY, Run, manifest, ringmaster, wait_for

VERSION = re.search(r"project\(ringmaster VERSION ([\d.]+)", (REPOSITORY / "CMakeLists.txt").read_text())[1]
OTHER_BIN = pathlib.Path(os.environ.get("RINGMASTER_OTHER_BIN", BIN.parent / "other_bin"))
OTHER_SIDECAR = OTHER_BIN / "ringmaster-sidecar"
OTHER_LIBRARY = os.environ.get("RINGMASTER_OTHER_LIBRARY", str(BIN.parent / "other_lib/libringmaster.so"))
TRAIN = """
import time, ringmaster as rm
from ringmaster.barriers import barrier
steps = [0]
rm.init()
rm.register_state("steps", lambda: steps[0], lambda value: steps.__setitem__(0, value))
rm.enter()
while True:
    barrier()
    steps[0] += 1
    rm.end_step()
    rm.report(steps=steps[0])
    time.sleep(0.01)
"""


def programs(folder, sidecar, command=BIN):
    """A `ringmaster` beside a sidecar of our choice, which finds what it installs as in a build."""
    for name, source in (("ringmaster", command), ("ringmaster-launcher", BIN), ("ringmaster-bench", BIN), ("ringmaster-sidecar", sidecar)):
        (folder / "bin").mkdir(exist_ok=True)
        shutil.copy(source if source is sidecar else source / name, folder / "bin" / name)
    for name in ("lib", "python"):
        (folder / name).symlink_to(BIN.parent / name)
    return [str(folder / "bin/ringmaster")]


def trains(run, size, after=0):
    epoch = run.world("job", size, after)
    workers = run.workers("job")
    steps = max(worker["step"] for worker in workers.values())
    wait_for("ten more steps", lambda: max(worker["step"] for worker in run.workers("job").values()) >= steps + 10, alive=run.alive)
    return epoch


@pytest.mark.parametrize("library_of, sidecar, other_pods", [("0.0.9", VERSION, "2"), (VERSION, "0.0.9", "[012]")])
def test_a_library_and_a_sidecar_of_different_versions_train_through_a_death(tmp_path, library_of, sidecar, other_pods):
    """In the first case one pod has the older library among newer ones, in the second all sidecars are older than the libraries."""
    choose = "case $RINGMASTER_POD_NAME in *-worker-2) export RINGMASTER_LIBRARY=%s;; esac; exec " % OTHER_LIBRARY
    if library_of == VERSION:
        choose = "exec "
    job = tmp_path / "job.yaml"
    job.write_text(manifest("job", ["sh", "-c", choose + '"$@"', "sh", "python3", "-c", TRAIN], replicas=3))
    ours = sidecar == VERSION
    with Run(job, program=programs(tmp_path, BIN / "ringmaster-sidecar" if ours else OTHER_SIDECAR), PATH="/usr/bin:/bin") as run:
        epoch = trains(run, 3)
        says = "libringmaster.so of another version than their sidecar: %s beside a sidecar of %s (%s). They train together" % (
            library_of, sidecar, ", ".join("job-worker-%d" % pod for pod in range(3) if re.match(other_pods, str(pod))))
        assert says in run.do("why", "job")
        assert says in run.do("describe", "job")
        assert "sidecars of several versions" not in run.do("why", "job")
        logs = [log.read_text() for log in run.dir.glob("logs/*/*.log")]
        assert sum("library=%s sidecar=%s" % (library_of, sidecar) in log for log in logs) == (1 if ours else 3)
        for victim in ("job-worker-0", "job-worker-2"):  # with the newer library, and with the older one
            run.do("kill", victim, "--worker", "0")
            epoch = trains(run, 3, after=epoch + 1)  # one view without it, one with it again
        assert says in run.do("why", "job")


@pytest.mark.parametrize("run_of, command_of", [(BIN, OTHER_BIN), (OTHER_BIN, BIN)], ids=["older_command", "newer_command"])
def test_the_command_of_one_version_shows_and_changes_a_run_of_the_other(tmp_path, run_of, command_of):
    def versions(*folders):
        return {ringmaster("version", program=[str(folder / "ringmaster")]).stdout for folder in folders}
    assert len(versions(run_of, command_of)) == 2, "both are of one version"
    job = tmp_path / "job.yaml"
    job.write_text(manifest("job", ["python3", "-c", 'print("it begins", flush=True)\n' + TRAIN], replicas=2))
    with Run(job, program=programs(tmp_path, run_of / "ringmaster-sidecar", run_of), PATH="/usr/bin:/bin") as run:
        def do(*words):
            done = ringmaster(*words, "--run-dir", run.dir, program=[str(command_of / "ringmaster")])
            assert done.returncode == 0 and done.stderr == "", done
            return done.stdout
        epoch = trains(run, 2)
        assert re.search(r"^job +Running +2/2 +2 ", do("get"), re.M)
        assert re.search(r"^job-worker-1 .* Training ", do("get", "job", "-o", "wide"), re.M)
        assert json.loads(do("get", "job", "-o", "json"))["status"]["worldSize"] == 2
        assert re.search(r"^job-worker-1 ", do("describe", "job"), re.M)
        assert re.match(r"job trains: step \d+, [1-9]\d* more in 2 s, 2 workers, ", do("why", "job"))
        assert re.match(r"job   view 1\.\d+   2 workers   step [1-9]", do("top", "job", "--interval", "0.5"))
        assert sorted(do("logs", "job").splitlines()) == ["[0] it begins", "[1] it begins"]
        assert re.match(r"2 ranks, [1-9]\d* events of ", do("timeline", "job", "-o", tmp_path / "timeline.json"))
        do("drain", "job-worker-1")
        epoch = trains(run, 2, after=epoch + 1)  # one view without it, one with the pod that replaces it
        do("scale", "job", "--replicas", 1)
        trains(run, 1, after=epoch)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
