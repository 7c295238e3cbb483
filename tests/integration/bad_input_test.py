"""Bad input ends with one clear message that names the field or the cause, a non-zero status, and nothing left behind."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import pytest

import harness
from harness import BIN, Run, manifest, ringmaster, wait_for

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


def test_run_prints_what_the_page_on_the_api_shows_of_a_wrong_manifest(tmp_path):
    page = (harness.REPOSITORY / "docs/api.md").read_text()
    of_fields, of_rules = re.findall(r"\$ ringmaster run job\.yaml\n(ringmaster: .*\n(?:job\.yaml: .*\n)*)", page)
    typed_wrong = json.loads(changed(**{"spec.worker.replicas": "4"}))
    typed_wrong["spec"]["worker"]["template"]["spec"]["containers"][0]["comand"] = ["true"]
    for text, shown in (json.dumps(typed_wrong), of_fields), (changed(**{"spec.worker.replicas": 9}), of_rules):
        (tmp_path / "job.yaml").write_text(text)
        done = ringmaster("run", "job.yaml", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, shown)


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
    done = ringmaster("run", str(path) + ".gone")
    assert done.returncode == 2 and str(path) + ".gone" in done.stderr, done.stderr
    path.chmod(0)
    # Root without its capabilities is refused as anybody else.
    as_anybody = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
    done = ringmaster("run", path, program=[*as_anybody, str(BIN / "ringmaster")])
    assert done.returncode == 2 and str(path) in done.stderr and "ermission denied" in done.stderr, done.stderr


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


@pytest.mark.parametrize("words, says", [
    (("bench", "--csv", "/proc/no/such"), "--csv /proc/no/such: can't be written: No such file or directory"),
    (("run", "--metrics-listen", "nonsense", "-np", 1, "true"), "--metrics-listen: can't listen on \"nonsense\": allowed: host:port"),
    (("convert", "/proc"), "/proc: can't be read: Is a directory"),
    (("convert", "/proc/no/such"), "/proc/no/such: can't be read: No such file or directory")])
def test_a_value_that_can_not_be_is_a_wrong_word(words, says):
    done = ringmaster(*words)
    assert done.returncode == 2 and done.stderr.startswith("ringmaster: " + says), done


@pytest.mark.parametrize("words", [("--help",), ("version",), ("completion", "bash")])
def test_what_can_not_be_printed_is_a_failure(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(BIN / "ringmaster"), *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=harness.PATIENCE, env=harness.environment())
    assert done.returncode == 3 and "what it printed can't be written" in done.stderr, done


def test_a_reader_that_goes_early_is_no_failure():
    done = subprocess.run(["bash", "-c", "set -o pipefail; ringmaster completion bash | head -n 1"], capture_output=True, text=True, timeout=harness.PATIENCE,
                          env=harness.environment())
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.parametrize("option", ["--summary", "--output-filename", "--run-dir", "--carry"])
def test_a_path_of_run_that_can_not_be_is_a_wrong_word(option):
    path = "/proc/no/such"  # nobody makes a file there, not even root
    done = ringmaster("run", option, path, "-np", 1, "true")
    assert done.returncode == 2 and path in done.stderr, done


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
        assert re.search(r"^ringmaster: job failed: after initTimeoutSeconds \(2 s\) these have not come to init\(\): job-worker-[01] \(slot 0 ",
                         run.text(), re.M), run.text()


def test_timeout_ends_a_job_that_hangs(write):
    with Run("--timeout", 2, write(manifest(command=["sleep", "600"]))) as run:
        assert run.wait() == 1
        assert "not done after 2 s" in run.text()
        assert run.lines[-1] == "All logs: %s/logs" % run.dir
        assert run.summary()["exitReason"] == "Timeout"


def test_a_run_whose_directory_was_removed_ends_and_names_no_logs_that_are_gone():
    with Run("-np", 1, "sh", "-c", "echo begun; exec sleep 1000") as run:
        run.line(r"^\[0\] begun")
        run.dir.rename(run.dir.with_name("removed"))
        (run.dir / "logs").mkdir(parents=True, exist_ok=True)  # as a process does whose log begins just now
        assert run.wait() == 1
        assert "the run's directory was removed while the run went on" in run.text()
        assert run.lines[-1] == "The logs are gone: %s was removed while the run went on" % run.dir, run.text()


def test_scaling_a_job_of_fixed_size_is_answered_with_what_to_type(tmp_path):
    with Run("-np", 2, harness.WORKER, tmp_path) as run:
        run.world("elastic-worker", 2)
        done = run.command("scale", "elastic-worker", "--replicas", 3)
        assert done.returncode == 2 and "`ringmaster run -np 2 --max-np 3 %s %s`" % (harness.WORKER, tmp_path) in done.stderr, done.stderr
        (tmp_path / "stop").touch()
        assert run.wait() == 0


def test_shared_memory_too_small_is_said_or_not_needed(write, tmp_path):
    """Arenas are memfds, so a tiny /dev/shm alone harms nobody: the job has to succeed with it."""
    if not harness.SANDBOXED:
        assert os.environ.get("REQUIRE_CLUSTER") != "1", "REQUIRE_CLUSTER=1, and there is no mount namespace"
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


def test_a_name_that_is_not_there_is_answered_with_what_there_is(write, tmp_path):
    with tempfile.TemporaryDirectory(prefix="rm-") as home:
        runs = pathlib.Path(home) / ("ringmaster-%d" % os.getuid())
        runs.mkdir(mode=0o700)
        mine, other = (write(manifest(name, ["sleep", "600"], replicas=1), name + ".yaml") for name in ("mine", "other"))
        with Run("--run-dir", runs / "a", other) as older:
            older.line("starting")
            with Run("--run-dir", runs / "b", mine) as newer:
                newer.line("starting")
                wait_for("the pods", lambda: all(run.command("logs", name + "-worker-0").returncode == 0 for run, name in ((older, "other"), (newer, "mine"))))
                here = 'there is no job "%s" in namespace "default"'
                for words, says in ((("why", "mime"), here % "mime" + "; did you mean mine?"),
                                    (("get", "mine-worker-0"), '"mine-worker-0" is a pod of job "mine", and a job is wanted'),
                                    (("describe", "other"), here % "other" + " of this run; another run has that job: --run-dir %s" % older.dir),
                                    (("logs", "zzz"), 'there is no pod or job "zzz" in namespace "default"; there is mine, mine-worker-0'),
                                    (("top", "zzz", "-n", "nowhere"), 'there is no job "zzz" in namespace "nowhere", and no other'),
                                    (("drain", "mine", "--run-dir", newer.dir), '"mine" is a job, and a pod is wanted; the job has mine-worker-0')):
                    done = ringmaster(*words, RINGMASTER_RUNS=home)
                    assert done.returncode == 1 and done.stdout == "", done
                    assert done.stderr.splitlines()[-1] == "ringmaster: " + says, done.stderr
        gone = ringmaster("get", "--run-dir", runs / "b")
        assert gone.returncode == 2 and "no run is alive in" in gone.stderr, gone.stderr


def commands_with_a_name():
    """All commands whose first argument names a job or a pod, as the shells' completion knows them, with what else they need."""
    names = re.findall(r"^ +(\w+)\) .*; names=1 ;;$", ringmaster("completion", "bash").stdout, re.M)
    assert {"get", "logs", "drain"} <= set(names), names
    return [(name, ["--replicas", 1] if name == "scale" else []) for name in names]


def test_the_same_mistake_has_the_same_exit_status_with_every_command(write, tmp_path):
    with Run(write(manifest(command=[harness.WORKER, tmp_path]))) as run:
        run.world("job", 2)
        variants = [*commands_with_a_name(), ("get", ["-w"]), ("get", ["-o", "json"]), ("logs", ["-f"]), ("logs", ["--rank", 1]),
                    ("kill", ["--worker", 0]), ("top", ["--once"])]
        mistakes = ((["nope", "--run-dir", run.dir], 1, "nope"),  # no such job or pod
                    (["nope", "-n", "nowhere", "--run-dir", run.dir], 1, "nowhere"),
                    (["nope", "--run-dir", "/no/such/run"], 2, "/no/such/run"),
                    (["nope", "--kubeconfig", "/no/such/file"], 2, "/no/such/file"),
                    (["nope", "--context", "nothing", "--kubeconfig", run.dir / "kubeconfig"], 2, "nothing"),
                    (["nope", "--frobnicate"], 2, "--frobnicate"))
        for command, more in variants:
            for words, status, named in mistakes:
                done = ringmaster(command, *more, *words)
                assert done.returncode == status and named in done.stderr and done.stdout == "", done
                assert len(done.stderr.splitlines()) <= 2, done.stderr
        shutil.copy("/bin/true", tmp_path / "solve")
        for words, status, named in ((("logs", "job", "--rank", 7), 1, "7"),
                                     (("logs", "job", "-c", "nope"), 1, "-c nope: job has no such container; it has worker, ringmaster-"),
                                     (("run", tmp_path / "solve"), 2, "type `ringmaster run -np N %s`" % (tmp_path / "solve")),
                                     (("kill", "job-worker-0", "--worker", 7), 1, "7"),
                                     (("scale", "job", "--replicas", 99), 2, "99"),
                                     (("timeline", "job", "-o", "/no/such/folder/t.json"), 2, "/no/such/folder/t.json"),
                                     (("apply", "/no/such/folder/job.yaml"), 2, "/no/such/folder/job.yaml"),
                                     (("convert", "/no/such/folder/job.yaml"), 2, "/no/such/folder/job.yaml")):
            done = ringmaster(*words, *([] if words[0] in ("convert", "run") else ["--run-dir", run.dir]))
            assert done.returncode == status and named in done.stderr and done.stdout == "", done
        (tmp_path / "stop").touch()
        assert run.wait() == 0


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
