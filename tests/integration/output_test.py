"""What workers print is not lost: rank 0's lines wherever it is, files of each rank, and a failure that says first which worker and which exception."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import threading

import pytest

import harness
from harness import Run, manifest, wait_for

PYTHON = "/usr/bin/python3"
# Every rank prints; rank 1 then fails while the others wait for it.
ONE_FAILS = """
import os, sys, time
rank = int(os.environ["HOROVOD_RANK"])
print("rank", rank, "speaks", flush=True)
print("and warns", file=sys.stderr, flush=True)
open("spoke.%d" % rank, "w").close()
if rank == 1:
    for _ in range(6000):
        if os.path.exists("spoke.0"):
            break
        time.sleep(0.01)
    raise ValueError("no such data set")
time.sleep(600)
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text(ONE_FAILS)
    return tmp_path / "train.py"


def check_files(out, size):
    for rank in range(size):
        assert (out / ("rank.%d" % rank) / "stdout").read_text() == "rank %d speaks\n" % rank
        assert (out / ("rank.%d" % rank) / "stderr").read_text().startswith("and warns\n")
    assert "ValueError: no such data set" in (out / "rank.1/stderr").read_text()


def failure(run):
    """The lines from the failure on, which come last."""
    lines = run.lines
    return lines[next(i for i, line in enumerate(lines) if line.startswith("ringmaster: ")):]


def test_a_command_that_fails_says_which_worker_and_which_exception_first(script, tmp_path):
    out = tmp_path / "out"
    with Run("--output-filename", out, "-np", 2, PYTHON, "train.py", cwd=tmp_path) as run:
        assert run.wait() == 1, run.text()
        check_files(out, 2)
        lines = failure(run)
        assert lines[0] == "ringmaster: train failed: worker [1] ended with exit code 1", run.text()
        assert lines[1] == "  ValueError: no such data set"
        assert lines[-2:] == ["Output of each rank: %s" % out, "All logs: %s/logs" % run.dir]
        assert run.text().count("[1] Traceback") == 1, "it was shown while it came\n" + run.text()
        logs = run.dir / "logs/train-worker-0/worker.log"
        assert "[1] ValueError: no such data set" in logs.read_text()


def test_a_manifest_that_fails_shows_the_traceback_of_the_worker_that_failed(script, tmp_path):
    out = tmp_path / "out"
    (out / "rank.7").mkdir(parents=True)
    (out / "rank.7/stdout").write_text("of an earlier run")
    (tmp_path / "job.yaml").write_text(manifest(command=[PYTHON, "train.py"]))
    with Run("--output-filename", out, tmp_path / "job.yaml") as run:
        assert run.wait() == 1, run.text()
        check_files(out, 2)
        assert not (out / "rank.7").exists()
        lines = failure(run)
        assert lines[0] == "ringmaster: job failed: worker [1] ended with exit code 1", run.text()
        assert lines[1] == "  ValueError: no such data set"
        assert lines[2] == "  [1] Traceback (most recent call last):"
        assert sum("ValueError" in line for line in lines) == 3, "its line, the script's line and the traceback's\n" + run.text()
        assert lines[-1] == "All logs: %s/logs" % run.dir


def test_a_signal_is_named(tmp_path):
    text = manifest(command=[PYTHON, "-c", "import os; os.abort()"], replicas=1, runPolicy={"backoffLimit": 0})
    (tmp_path / "job.yaml").write_text(text)
    with Run(tmp_path / "job.yaml") as run:
        assert run.wait() == 1, run.text()
        assert failure(run)[:2] == ["ringmaster: job failed: worker [0] ended with exit code 134",
                                    "  killed by SIGABRT (signal 6, aborted)"], run.text()


# The worker with rank 0 says each step, and there are several between two looks of a run at who that is.
STEPS = """
import time
import ringmaster as rm
state = {"step": 0}
rm.register_state("state", lambda: state, state.update)
rm.init()
rm.enter()
while True:
    state["step"] += 1
    rm.end_step()
    if rm.rank() == 0:
        print("step", state["step"], flush=True)
    time.sleep(0.02)
"""


def shown_steps(run):
    """(number of the worker, step) of each line that says one."""
    found = (re.fullmatch(r"\[(\d+)\] step (\d+)", line) for line in list(run.lines))
    return [(int(match[1]), int(match[2])) for match in found if match]


@pytest.mark.parametrize("leaves", ["drain", "kill"])
def test_no_line_of_rank_0_is_lost_when_another_worker_gets_it(write, leaves):
    write(STEPS, "train.py")
    with Run(write(manifest(command=[PYTHON, "train.py"], replicas=3))) as run:
        run.world("job", 3)
        first = wait_for("a step", lambda: shown_steps(run), alive=run.alive)[0][0]
        run.do(leaves, "job-worker-%d" % first)
        wait_for("steps of another", lambda: len([n for n, _ in shown_steps(run) if n != first]) > 20, alive=run.alive)
        harness.send(run)
        run.wait()
        of_first = [step for number, step in shown_steps(run) if number == first]
        of_next = [step for number, step in shown_steps(run) if number != first]
        assert of_next == list(range(of_next[0], of_next[0] + len(of_next))), "none is missing, none comes twice\n" + run.text()
        # A worker that is killed may have completed a step and not have said so.
        assert of_next[0] - of_first[-1] <= (1 if leaves == "drain" else 2), run.text()


def test_what_is_printed_before_init_is_shown_once(write, tmp_path):
    (tmp_path / "train.py").write_text("import os, time\nprint('loads the data', flush=True)\n"
                                       "while not os.path.exists('go'):\n    time.sleep(0.02)\n"
                                       "import ringmaster as rm\nrm.init()\nrm.shutdown()\n")
    # At least two: on a busy machine the second could come to its init() seconds before the first, and begin without it.
    with Run(write(manifest(command=[PYTHON, "train.py"], replicas=2, elasticPolicy__minReplicas=2))) as run:
        run.line(r"^\[0\] loads the data$")
        (tmp_path / "go").touch()
        assert run.wait() == 0, run.text()
        assert [line for line in run.lines if "loads" in line] == ["[0] loads the data"], run.text()


def test_lines_with_a_nul_and_lines_that_are_too_long_for_one(tmp_path):
    # init() returns when both have come to it, and so have printed.
    (tmp_path / "train.py").write_text("import sys\nimport ringmaster as rm\nsys.stdout.buffer.write(b'before\\0after\\n' + b'A' * 150000 + b'\\n')\n"
                                       "sys.stdout.flush()\nrm.init()\nraise ValueError('a \\0 b')\n")
    with Run("-np", 2, PYTHON, "train.py", cwd=tmp_path) as run:
        assert run.wait() == 1, run.text()
        for worker in "[0] ", "[1] ":
            own = [line for line in run.lines if line.startswith(worker)]
            assert own[0] == worker + "before\0after"
            assert "".join(line[len(worker):] for line in own if line.startswith(worker + "A")) == "A" * 150000
        assert not any(line.startswith("AA") for line in run.lines), "each piece has its worker's number"
        assert any("its worker exited with 1" in line for line in failure(run)), "what follows the NUL"


class Screen:
    """A command on a terminal of 80 columns, and the lines that it leaves there."""

    def __init__(self, *words):
        self.screen, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen([str(harness.BIN / "ringmaster"), *map(str, words)], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
                                        env=harness.environment())
        os.close(terminal)
        self.drawn = b""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            try:
                some = os.read(self.screen, 4096)
            except OSError:  # the terminal is closed
                return
            if not some:
                return
            self.drawn += some

    def alive(self):
        return self.process.poll() is None

    def drawings(self):
        """All that was drawn and taken away again, or stays."""
        return [part for line in self.drawn.decode().split("\r\n") for part in line.split("\r\x1b[K")]

    def lines(self):
        """Those that stay."""
        return [line.split("\r\x1b[K")[-1] for line in self.drawn.decode().split("\r\n")[:-1]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.reader.join(5)
        os.close(self.screen)


def test_on_a_narrow_terminal_what_holds_a_job_up_is_read_in_whole(write):
    why = "0 of 2 pods ready, at least 2 needed; waiting for job-worker-0, job-worker-1 (slot 0 has not called init())"
    text = manifest(command=["sleep", "600"], replicas=2, elasticPolicy__minReplicas=2)
    # Short: unix sockets lie below it.
    with tempfile.TemporaryDirectory(prefix="rm-") as home, Screen("run", "--run-dir", home + "/r", write(text)) as screen:
        wait_for("the reason", lambda: [line for line in screen.lines() if line.endswith("s  " + why)], alive=screen.alive)
        lines = screen.lines()
        assert len([line for line in lines if line.endswith(why)]) == 1, lines
        cut = [part for part in screen.drawings() if "starting: 0 of 2 pods ready" in part]
        assert cut and all(len(part) == 79 for part in cut), "the line that is drawn anew does not wrap: %r" % cut


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
