"""Functions as jobs: `run(fn, np=...)` on this machine."""

import signal
import subprocess
import sys
import tempfile

import pytest

import harness
import optional

PYTHON = "/usr/bin/python3"
PACKAGES = str(harness.BIN.parent / "python")
# The calls stand in scripts of their own: what they define is of __main__, as in a notebook.
HEAD = """
import os, signal, sys, threading, time
import horovod
from ringmaster.runner import FunctionError, LaunchError, RankError, log_to_driver, run

def trained(scale, plus=0):
    import ringmaster as rm
    rm.init()
    print("rank", rm.rank(), "trains", flush=True)
    return rm.rank() * scale + plus
"""


@pytest.fixture
def call(tmp_path):
    """call(code): a script that launches; its output. It must end well unless `status` says else."""
    # Short: unix sockets lie below it.
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp") as folder:
        def do(code, status=0, **env):
            (tmp_path / "launches.py").write_text(HEAD + code)
            done = subprocess.run([PYTHON, "-B", "launches.py"], cwd=tmp_path, capture_output=True, text=True, timeout=harness.PATIENCE,
                                  env=environment(folder, **env), stdin=subprocess.DEVNULL)
            assert done.returncode == status, done.stdout + done.stderr
            return done.stdout + done.stderr
        do.folder = folder
        yield do


def environment(folder, **more):
    return dict(harness.environment(RINGMASTER_RUNS=folder, PYTHONPATH=PACKAGES), **more)


def test_values_come_back_in_the_order_of_the_ranks_and_output_as_it_is_printed(call):
    optional.module("cloudpickle")
    said = call("""
assert run(trained, (10,), {"plus": 1}, np=3) == [1, 11, 21]
assert horovod.run(lambda: len(sys.argv), np=2, show_output=False) == [1, 1], "uses no collectives"
""")
    for rank in range(3):
        assert "[%d] rank %d trains" % (rank, rank) in said


def test_what_a_rank_raises_is_raised_with_its_rank_and_traceback(call):
    optional.module("cloudpickle")
    said = call("""
class Own(Exception):
    pass

def fails():
    import ringmaster as rm
    rm.init()
    if rm.rank() == 1:
        raise Own("no such data set")
    time.sleep(600)

try:
    run(fails, np=2)
except Own as error:
    told = error.__cause__
    assert isinstance(told, RankError) and told.rank == 1 and "in fails" in told.traceback, told
    assert str(error) == "no such data set"
    print("raised again")
""")
    assert "raised again" in said and "[1] Traceback" in said


def test_a_death_fails_the_job_and_says_of_which_rank(call):
    optional.module("cloudpickle")
    said = call("""
def dies():
    import ringmaster as rm
    rm.init()
    if rm.rank() == 1:
        os._exit(7)
    time.sleep(600)

try:
    run(dies, np=2, show_output=False)
except LaunchError as error:
    print("said:", error)
""")
    assert "said: dies failed: worker [1] ended with exit code 7" in said, said


@pytest.mark.parametrize("end", ["", "rm.shutdown()"])
def test_a_rank_that_died_is_replaced_and_every_rank_returns_its_value(call, end):
    optional.module("cloudpickle")
    call("""
def elastic():
    import ringmaster as rm
    state = {"step": 0}
    rm.register_state("state", lambda: state, state.update)
    rm.init()
    first = not rm.is_joining()
    rm.enter()
    killed = False
    while state["step"] < 10 or not (state.get("lost") and rm.size() == 2):
        state["step"] += 1
        if state["step"] == 5 and first and rm.rank() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        rm.end_step()
        if rm.size() == 1:
            state["lost"] = True
        time.sleep(0.02)
    value = rm.rank(), state["step"]
    %s
    return value

values = run(elastic, np=2, min_np=1, show_output=False)
assert [rank for rank, _ in values] == [0, 1] and values[0][1] == values[1][1], values
""" % end)


def test_a_world_that_shrank_and_was_shut_down_has_a_value_for_each_rank_that_is_left(call):
    optional.module("cloudpickle")
    call("""
def shrinks():
    import ringmaster as rm
    rm.init()  # registers no state: nobody is let in for the one that dies
    step = 0
    while step < 10 or rm.size() == 3:
        step += 1
        if step == 5 and rm.size() == 3 and rm.rank() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        rm.end_step()
        time.sleep(0.02)
    rank = rm.rank()
    rm.shutdown()
    return rank

values = run(shrinks, np=3, min_np=1, show_output=False)
assert values == [0, 1], values
""")


@pytest.mark.parametrize("first", ["[1, 2]", "[2]", "[1]"])
def test_a_rank_that_dies_when_others_have_returned_leaves_a_value_for_each_rank_of_the_end(call, first):
    """Those in `first` return at once and wait for the others' end, while rank 0 dies; the last one returns when it has seen that."""
    optional.module("cloudpickle")
    call("""
def moves():
    import ringmaster as rm
    rm.init()
    if rm.is_joining():
        return "a successor, which nobody lets in"
    born = rm.rank()
    if born == 0:
        while len(os.listdir(folder)) < %d:
            time.sleep(0.01)
        time.sleep(0.3)  # so that they wait
        os.kill(os.getpid(), signal.SIGKILL)
    if born not in %s:
        while rm.size() == 3:
            time.sleep(0.01)
    open(os.path.join(folder, str(born)), "w").close()
    return born

import tempfile
with tempfile.TemporaryDirectory() as folder:
    values = run(moves, np=3, min_np=1, max_np=3, show_output=False)
assert values == [1, 2], values
""" % (len(eval(first)), first))


def test_ctrl_c_ends_the_job(tmp_path, call):
    optional.module("cloudpickle")
    (tmp_path / "waits.py").write_text(HEAD + """
def waits():
    import ringmaster as rm
    rm.init()
    print("waits", flush=True)
    time.sleep(600)

try:
    run(waits, np=2)
except KeyboardInterrupt:
    print("interrupted in order")
""")
    with subprocess.Popen([PYTHON, "-B", "waits.py"], cwd=tmp_path, env=environment(call.folder), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert any("waits" in line for line in run.stdout)
        run.send_signal(signal.SIGINT)
        rest = run.stdout.read()
    assert run.returncode == 0 and "interrupted in order" in rest, rest


def test_a_discovery_script_says_where_the_workers_of_a_function_are(call):
    optional.module("cloudpickle")
    call("""
with open("hosts.sh", "w") as script:
    script.write("#!/bin/sh\\necho localhost\\n")
os.chmod("hosts.sh", 0o755)
values = run(trained, (10,), np=2, host_discovery_script="./hosts.sh", slots=2, show_output=False)
assert values == [0, 10], values
""")


def test_log_to_driver_is_shown_where_other_output_is_not_and_stdout_need_be_no_file(call):
    optional.module("cloudpickle")
    said = call("""
class Notebook:
    def __init__(self, below):
        self.below = below
    def write(self, text):
        return self.below.write(text.replace("loss", "LOSS"))
    def flush(self):
        self.below.flush()

def logs():
    import ringmaster as rm
    from ringmaster.runner import log_to_driver
    rm.init()
    print("not shown")
    if rm.rank() == 0:
        log_to_driver("loss 0.5\\nand more")

sys.stdout = Notebook(sys.stdout)
run(logs, np=2, show_output=False)
""")
    assert said == "LOSS 0.5\nand more\n"


def test_without_cloudpickle_a_function_of_a_module_can_be_sent_and_others_say_the_way_out(tmp_path, call):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/cloudpickle.py").write_text("raise ImportError('hidden')\n")
    (tmp_path / "model.py").write_text("def train(x):\n    import ringmaster as rm\n    rm.init()\n    return x + rm.rank()\n")
    said = call("""
from model import train
assert run(train, (5,), np=2, show_output=False) == [5, 6]
try:
    run(trained, (1,), np=2)
except FunctionError as error:
    print(error)
""", PYTHONPATH=str(tmp_path / "hidden") + ":" + PACKAGES)
    assert "without the package cloudpickle: it stands in the script or notebook itself" in said and "pip install cloudpickle" in said


IN_A_KERNEL = """
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(book, timeout=80, kernel_name="python3").execute()
for cell in book.cells:
    for output in cell.get("outputs", ()):
        print(output.get("text") or output.get("data", {}).get("text/plain", ""))
"""


def test_the_example_notebook_runs_in_a_kernel(tmp_path):
    optional.module("cloudpickle")
    done = subprocess.run([optional.notebook_python(), "-c", IN_A_KERNEL, harness.REPOSITORY / "examples/notebook/train.ipynb"],
                          capture_output=True, text=True, timeout=harness.PATIENCE, stdin=subprocess.DEVNULL,
                          env=harness.environment(PYTHONPATH=PACKAGES, OMP_NUM_THREADS="1", HOME=str(tmp_path), JUPYTER_PLATFORM_DIRS="1"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[[1.0, -2.0, 0.5], [1.0, -2.0, 0.5]]" in done.stdout, done.stdout
    assert "rank 1 of 2: loss 0.0000" in done.stdout, done.stdout


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
