"""`horovodrun` as people type it: Horovod's options, over the `ringmaster run` that is there."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

import harness

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import processes  # noqa: E402

PYTHON = "/usr/bin/python3"
PACKAGES = str(harness.BIN.parent / "python")
HOROVODRUN = [PYTHON, "-B", "-m", "horovod.runner"]
# Says what a script for Horovod would ask for, without a framework: those take seconds to import.
PLAIN = """
import os, sys
import ringmaster as rm
rm.init()
assert rm.rank() == int(os.environ["HOROVOD_RANK"]) and rm.size() == int(os.environ["HOROVOD_SIZE"])
names = ("HOROVOD_TIMELINE", "HOROVOD_STALL_CHECK_TIME_SECONDS", "HOROVOD_STALL_CHECK_DISABLE", "RINGMASTER_SHM", "RINGMASTER_COLLECTIVES")
print("rank", rm.rank(), "of", rm.size(), sys.argv[1:], *[os.environ.get(name) for name in names], flush=True)
if "EXIT" in os.environ and rm.rank() == 1:
    sys.exit(int(os.environ["EXIT"]))
"""
ELASTIC = harness.resizing_script('print("sizes", sizes, flush=True)')


@pytest.fixture(autouse=True)
def runtime_folder(monkeypatch):
    """Where runs keep their logs, those that failed, too. Short: unix sockets lie below it."""
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp") as folder:
        monkeypatch.setattr(harness, "runtime_folder", folder, raising=False)
        yield


def environment(**more):
    env = harness.environment(RINGMASTER_RUNS=harness.runtime_folder, PYTHONPATH=PACKAGES, **more)
    env.pop("RINGMASTER_BIN", None)
    return env


def horovodrun(*words, cwd=None, **env):
    return subprocess.run([*HOROVODRUN, *map(str, words)], capture_output=True, text=True, timeout=harness.PATIENCE, cwd=cwd,
                          env=environment(**env), stdin=subprocess.DEVNULL)


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text(PLAIN)
    return tmp_path


def test_a_command_line_of_horovods_starts_its_workers(script):
    done = horovodrun("-np", 2, "--gloo", "-H", "localhost:4", "-p", 22, "--cycle-time-ms", 3.5, "--autotune", "--timeline-filename", "t.json",
                      "--fusion-threshold-mb", 32, "--start-timeout", 60, "--stall-check-warning-time-seconds", 9, "--tcp", "--output-filename",
                      "out", "--verbose", PYTHON, "train.py", "-np", 7, "--lr", "0.1", cwd=script)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(2):
        says = re.search(r"^\[%d\] (rank %d of 2 .*)$" % (rank, rank), done.stdout, re.M)[1]
        assert says.startswith("rank %d of 2 ['-np', '7', '--lr', '0.1'] %s 9 None 0 {" % (rank, script / "t.json"))
        assert '"fusionThresholdBytes":33554432' in says.replace(" ", "")
        assert (script / "out" / ("rank.%d" % rank) / "stdout").read_text().rstrip("\n") == says
    notes = [line for line in done.stderr.splitlines() if "has no meaning here: " in line]
    assert [line.split()[1] for line in notes] == ["--cycle-time-ms", "--autotune", "-p"], done.stderr
    assert "ringmaster run -np 2 --init-timeout 60" in done.stderr
    assert (script / "t.json").exists() and (script / "t.rank1.json").exists()


def test_the_exit_status_is_handed_on(script):
    done = horovodrun("-np", 2, PYTHON, "train.py", cwd=script, EXIT="3")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "worker [1] ended with exit code 3" in done.stderr


def test_a_config_file_says_the_same_and_the_command_line_wins(script):
    (script / "config.yaml").write_text("controller: mpi\nparams: {fusion_threshold_mb: 8, cache_capacity: 4}\n"
                                        "timeline: {filename: c.json, mark_cycles: true}\nstall_check: {enabled: false, warning_time_seconds: 5}\n")
    done = horovodrun("-np", 1, "--config-file", "config.yaml", "--timeline-filename", "mine.json", PYTHON, "train.py", cwd=script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rank 0 of 1 [] %s 5 1 None {" % (script / "mine.json") in done.stdout
    assert '"fusionThresholdBytes":8388608' in done.stdout.replace(" ", "")
    assert re.findall(r"horovodrun: (\S+) has no meaning", done.stderr) == ["--mpi", "--cache-capacity", "--timeline-mark-cycles"]


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_a_signal_ends_the_job(tmp_path, number, status):
    (tmp_path / "wait.py").write_text("import time\nprint('waits', flush=True)\ntime.sleep(600)\n")
    with subprocess.Popen([*HOROVODRUN, "-np", "2", PYTHON, "wait.py"], cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        line = next((line for line in run.stdout if "waits" in line), None)
        run.send_signal(number)
        rest = run.stdout.read()
    assert line and run.returncode == status, rest


def discovering(tmp_path, slots):
    (tmp_path / "slots").write_text(slots)
    (tmp_path / "hosts.sh").write_text("#!/bin/sh\ncat %s/slots\n" % tmp_path)
    (tmp_path / "hosts.sh").chmod(0o755)
    (tmp_path / "train.py").write_text(ELASTIC)
    return subprocess.Popen([*HOROVODRUN, "-np", "2", "--min-np", "1", "--host-discovery-script", "./hosts.sh", PYTHON, "train.py"],
                            cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def test_workers_come_and_go_with_the_slots_that_a_script_finds(tmp_path):
    with discovering(tmp_path, "localhost:2\n") as run:
        seen = []
        for line in run.stdout:
            seen.append(line)
            # Where a worker starts late the first view has one.
            if re.match(r"\[0\] sizes \[(1, )?2\]$", line):
                (tmp_path / "slots").write_text("localhost:2\n127.0.0.1\n")
            elif re.match(r"\[1\] sizes \[.*3\]$", line):
                (tmp_path / "slots").write_text("localhost:1\n")
    assert run.returncode == 0, "".join(seen)
    assert any(re.search(r"sizes \[.*3, (2, )?1\]", line) for line in seen), "".join(seen)


def test_a_signal_ends_a_job_that_follows_a_script(tmp_path):
    with discovering(tmp_path, "localhost:2\n") as run:
        assert any(re.search(r"sizes \[(1, )?2\]", line) for line in run.stdout)
        run.send_signal(signal.SIGINT)
        rest = run.stdout.read()
    assert run.returncode == 130, rest


def test_a_launcher_that_is_killed_takes_its_job_with_it(tmp_path):
    with discovering(tmp_path, "localhost:2\n") as run:
        assert any(re.search(r"sizes \[(1, )?2\]", line) for line in run.stdout)
        run.kill()
    entry = "RINGMASTER_JOB_NAME=train"
    harness.wait_for("the end of its workers", lambda: not processes.with_environment(entry))
    harness.wait_for("the end of its node", lambda: "ringmaster" not in [name for _, name in processes.with_environment(None)])
    shutil.rmtree("/tmp/ring-nodes-%d" % os.getuid())  # its logs: nobody was left who could have taken them


def test_where_the_program_is_missing_it_says_where_it_was_looked_for(tmp_path):
    folder = tmp_path / "python"
    folder.mkdir()
    for name in ("ringmaster", "horovod"):
        os.symlink(os.path.realpath(os.path.join(PACKAGES, name)), folder / name)
    env = dict(environment(), PYTHONPATH=str(folder), PATH="/nowhere")
    done = subprocess.run([*HOROVODRUN, "-np", "2", "true"], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 3 and "RINGMASTER_BIN" in done.stderr and "PATH (/nowhere)" in done.stderr, done.stderr
    env["RINGMASTER_BIN"] = "/nowhere"
    done = subprocess.run([*HOROVODRUN, "-np", "2", "true"], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 3 and "RINGMASTER_BIN is /nowhere" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
