"""Bad input ends with one clear message that names the field or the cause, a non-zero status, and nothing left behind."""

import json
import os
import re
import socket
import subprocess
import sys

import pytest

import harness
from harness import BIN, Run, manifest, ringmaster

PYTHON = "/usr/bin/python3"


def changed(**changes):
    """A good manifest with some fields set ("a.b" -> value) or removed (None)."""
    job = json.loads(manifest(command=["true"]))
    for path, value in changes.items():
        at = job
        *folders, last = path.split(".")
        for folder in folders:
            at = at[int(folder)] if isinstance(at, list) else at[folder]
        if value is None:
            del at[last]
        else:
            at[last] = value
    return json.dumps(job)


CONTAINER = "spec.worker.template.spec.containers"

MANIFESTS = {
    "unknown field": ({"spec.wrker": {}}, ["spec.wrker", "worker"]),
    "unknown field further down": ({"spec.elasticPolicy.minReplica": 1}, ["spec.elasticPolicy.minReplica", "minReplicas"]),
    "wrong type": ({"spec.worker.replicas": "four"}, ["spec.worker.replicas", "four"]),
    "min above max": ({"spec.elasticPolicy.minReplicas": 9}, ["spec.elasticPolicy.minReplicas", "9", "8"]),
    "replicas above max": ({"spec.worker.replicas": 9}, ["spec.worker.replicas", "9", "8"]),
    "not in the list": ({"spec.elasticPolicy.onBelowMin": "Panic"}, ["spec.elasticPolicy.onBelowMin", "Panic", "Wait"]),
    "no image": ({CONTAINER + ".0.image": None}, [CONTAINER, "image"]),
    "no command": ({CONTAINER + ".0.command": None}, [CONTAINER, "command"]),
    "no container": ({CONTAINER: []}, [CONTAINER]),
    "no name": ({"metadata.name": None}, ["metadata.name"]),
    "a name that Kubernetes refuses": ({"metadata.name": "My_Job"}, ["metadata.name", "My_Job"]),
    "another kind": ({"kind": "MPIJob"}, ["kind", "MPIJob", "HorovodJob"]),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_wrong_manifest_names_field_value_and_what_is_allowed(case, write):
    changes, words = MANIFESTS[case]
    done = ringmaster("run", write(changed(**changes)))
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr
    assert len(done.stderr.splitlines()) == 1, "one wrong field, one line:\n" + done.stderr


def test_all_errors_of_all_manifests_are_said_at_once(write, tmp_path):
    write(changed(**{"spec.wrker": 1, "spec.worker.replicas": "four"}), "a.yaml")
    write(changed(**{"kind": "Job"}), "b.yaml")
    done = ringmaster("run", tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 3, done.stderr


def test_yaml_that_can_not_be_parsed_names_the_line(write):
    done = ringmaster("run", write("kind: HorovodJob\nspec: [1\nmetadata: {}\n"))
    assert done.returncode == 2
    assert "job.yaml" in done.stderr and "line" in done.stderr


def test_unreadable_file_is_named(write):
    path = write(manifest(command=["true"]))
    assert ringmaster("run", str(path) + ".gone").returncode == 2
    if os.getuid() == 0 and not harness.SANDBOXED:
        pytest.skip("root reads everything")
    path.chmod(0)
    # Root without its capabilities is refused as anybody else.
    done = subprocess.run(["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups",
                           str(BIN / "ringmaster"), "run", str(path)], capture_output=True, text=True,
                          env=harness.environment(), timeout=harness.PATIENCE)
    assert done.returncode in (2, 126), done.stderr
    assert "ermission denied" in done.stderr


def test_port_in_use_is_said_with_its_number(write):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = ringmaster("run", "--port", port, write(manifest(command=["true"])))
    assert done.returncode == 3, done.stderr
    assert str(port) in done.stderr and "in use" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_summary_that_can_not_be_written_is_said_before_anything_runs(write, tmp_path):
    done = ringmaster("run", "--summary", tmp_path / "no" / "s.json", write(manifest(command=["true"])))
    assert done.returncode == 2
    assert "--summary" in done.stderr and "No such file" in done.stderr


def test_run_directory_too_long_for_sockets_is_said(write, tmp_path):
    done = ringmaster("run", "--run-dir", tmp_path / ("x" * 90), write(manifest(command=["true"])))
    assert done.returncode == 2
    assert "too long" in done.stderr


def test_command_that_is_not_there_is_named(write):
    with Run(write(manifest(command=["no-such-program-here"]))) as run:
        assert run.wait() == 1
        assert "no-such-program-here" in run.text()


def test_script_that_exits_1_at_once_fails_the_job_and_shows_its_last_words(write):
    write("import sys\nprint('about to give up')\nsys.exit(1)\n", "bad.py")
    with Run(write(manifest(command=[PYTHON, "bad.py"]))) as run:
        assert run.wait() == 1
        assert "about to give up" in run.text()
        assert "code 1" in run.text()
        assert run.summary()["exitReason"] == "Failed"


def test_script_that_ends_with_0_without_init_is_a_fault(write):
    with Run(write(manifest(command=["true"]))) as run:
        assert run.wait() == 1, run.text()
        assert re.search(r"^ringmaster: job failed: worker \[[01]\] ended with exit code 0 without calling init\(\)\n"
                         r"  a script calls init\(\) first, and ends with shutdown\(\) or by leaving the interpreter$", run.text(), re.M), run.text()
        assert "worker exited with 1" not in run.text(), "that is its launcher's exit code\n" + run.text()


def test_worker_that_never_calls_init_is_named(write):
    text = manifest(command=["sleep", "600"], initTimeoutSeconds=2)
    with Run(write(text)) as run:
        assert run.wait() == 1
        assert "job-worker-" in run.text()
        assert "init" in run.text()


def test_timeout_ends_a_job_that_hangs(write):
    with Run("--timeout", 2, write(manifest(command=["sleep", "600"]))) as run:
        assert run.wait() == 1
        assert "not done after 2 s" in run.text()
        assert run.lines[-1] == "All logs: %s/logs" % run.dir
        assert run.summary()["exitReason"] == "Timeout"


def test_shared_memory_too_small_is_said_or_not_needed(write, tmp_path):
    """Arenas are memfds, so a tiny /dev/shm alone harms nobody: the job has to succeed with it."""
    if not harness.SANDBOXED:
        pytest.skip("needs a mount namespace")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/dev/shm"], check=True)
    try:
        (tmp_path / "stop").touch()
        with Run(write(manifest(command=[harness.WORKER, tmp_path]))) as run:
            assert run.wait() == 0, run.text()
    finally:
        subprocess.run(["umount", "/dev/shm"], check=True)


def test_commands_without_a_living_run_say_how_to_start_one():
    done = ringmaster("get")
    assert done.returncode == 2
    assert "ringmaster run" in done.stderr


def test_commands_name_what_is_not_there(write, tmp_path):
    with Run(write(manifest(command=[harness.WORKER, tmp_path]))) as run:
        run.world("job", 2)
        for words, name in ((("get", "nope"), "nope"), (("scale", "nope", "--replicas", 1), "nope"),
                            (("drain", "nope-1"), "nope-1"), (("kill", "nope-1"), "nope-1"),
                            (("logs", "nope"), "nope"), (("delete", "nope"), "nope"),
                            (("kill", "job-worker-0", "--worker", 7), "7"),
                            (("scale", "job", "--replicas", 99), "99")):
            done = ringmaster(*words, "--run-dir", run.dir)
            assert done.returncode in (1, 2), words
            assert name in done.stderr, done.stderr
            assert len(done.stderr.splitlines()) == 1, done.stderr
        (tmp_path / "stop").touch()
        assert run.wait() == 0


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
