"""Jobs whose processes have collectives of their own (spec.collectives.backend: None): scripts for torchrun and tf.distribute."""

import json
import os
import re
import signal

import pytest

import harness
import tensorflow_environments

EXAMPLE = harness.REPOSITORY / "examples/torchrun"
PYTHON = "/usr/bin/python3"

# Each process adds a line to `starts`, and waits to be ended, or until `go` is there.
WAITS = """
import json, os, time
names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT TF_CONFIG RINGMASTER_VIEW".split()
with open("starts", "a") as file:
    file.write(json.dumps(dict({name: os.environ[name] for name in names}, pid=os.getpid())) + "\\n")
while not os.path.exists("go"):
    time.sleep(0.02)
"""


def starts(folder, view, size):
    """What the processes of a view found in their environment, by rank, as soon as all have been started."""
    def there():
        file = folder / "starts"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        found = {int(line["RANK"]): line for line in lines if line["RINGMASTER_VIEW"] == view}
        return found if len(found) == size else None
    return harness.wait_for("%d processes of view %s" % (size, view), there)


def gone(pid):
    return not os.path.exists("/proc/%d" % pid)


def test_the_example_goes_on_from_its_checkpoint_when_a_worker_is_killed(tmp_path):
    # Its own manifest, but from another folder, with fewer workers and a checkpoint that is this test's.
    job = (EXAMPLE / "job.yaml").read_text()
    for before, after in (("replicas: 4", "replicas: 3"), ("/tmp/torchrun-digits.pt", str(tmp_path / "c.pt")),
                          ("python3, train.py", "%s, %s" % (PYTHON, EXAMPLE / "train.py"))):
        assert job.count(before) == 1
        job = job.replace(before, after)
    (tmp_path / "job.yaml").write_text(job)
    with harness.Run(tmp_path / "job.yaml", cwd=tmp_path) as run:
        run.line(r"epoch 5: .*3 workers")
        before = run.world("torchrun", 3)
        workers = run.workers("torchrun")
        os.kill(next(worker["pid"] for worker in workers.values() if worker["rank"] == 1), signal.SIGKILL)
        run.world("torchrun", 3, after=before)
        begun = [int(run.line(r"begins after ([1-9]\d*) epochs with 3 workers")[1])]
        assert run.wait() == 0, run.text()
        assert begun[0] >= 5 and float(re.search(r"accuracy (\d\.\d+) with 3 workers", run.text())[1]) > 0.9, run.text()
        # One of three died by itself; the others' errors are no failures of theirs.
        exits = [line for line in run.lines if "failed" in line]
        assert not exits, exits


def test_every_process_has_the_ranks_of_its_view_in_the_words_of_torchrun_and_tensorflow(tmp_path):
    with harness.Run("-np", 2, "--backend", "none", PYTHON, "-c", WAITS, cwd=tmp_path) as run:
        found = starts(tmp_path, "1.1", 2)
        config = json.loads(found[1]["TF_CONFIG"])
        assert config["task"] == {"type": "worker", "index": 1} and len(set(config["cluster"]["worker"])) == 2
        assert "%(MASTER_ADDR)s:%(MASTER_PORT)s" % found[1] == config["cluster"]["worker"][0]
        assert [found[rank]["LOCAL_RANK"] for rank in (0, 1)] == ["0", "1"]
        assert {(line["WORLD_SIZE"], line["LOCAL_WORLD_SIZE"], line["GROUP_RANK"]) for line in found.values()} == {("2", "2", "0")}
        os.kill(found[1]["pid"], signal.SIGKILL)
        again = starts(tmp_path, "1.2", 2)
        assert gone(found[0]["pid"]) and gone(found[1]["pid"])
        assert again[0]["MASTER_PORT"] == found[0]["MASTER_PORT"]
        (tmp_path / "go").touch()
        assert run.wait() == 0, run.text()


def test_a_pod_that_is_killed_and_one_that_leaves_by_plan_restart_the_others_with_new_ranks(tmp_path):
    with harness.Run("-np", 3, "--min-np", 2, "--backend", "none", PYTHON, "-c", WAITS, cwd=tmp_path) as run:
        epoch = run.world("python3", 3)
        run.do("kill", "python3-worker-0")
        epoch = run.world("python3", 3, after=epoch)
        view = run.job("python3")["status"]["view"]
        found = starts(tmp_path, view, 3)
        assert {line["WORLD_SIZE"] for line in found.values()} == {"3"}
        assert sorted(int(line["GROUP_RANK"]) for line in found.values()) == [0, 1, 2]
        run.do("drain", "python3-worker-1")
        run.world("python3", 3, after=epoch)
        again = starts(tmp_path, run.job("python3")["status"]["view"], 3)
        assert all(gone(line["pid"]) for line in found.values()) and not any(gone(line["pid"]) for line in again.values())
        (tmp_path / "go").touch()
        assert run.wait() == 0, run.text()


def test_when_the_only_pod_dies_the_job_begins_again_in_a_new_one(tmp_path):
    with harness.Run("-np", 2, "--backend", "none", PYTHON, "-c", WAITS, cwd=tmp_path) as run:
        found = starts(tmp_path, "1.1", 2)
        run.do("kill", "python3-worker-0")
        starts(tmp_path, "2.1", 2)
        assert all(gone(line["pid"]) for line in found.values())
        (tmp_path / "go").touch()
        assert run.wait() == 0, run.text()


def test_a_sidecar_that_dies_and_comes_back_ends_no_process(tmp_path):
    with harness.Run("-np", 2, "--min-np", 1, "--backend", "none", PYTHON, "-c", WAITS, cwd=tmp_path) as run:
        found = starts(tmp_path, "1.1", 2)
        before = run.world("python3", 2)
        sidecar = sidecar_of("python3-worker-0")
        os.kill(sidecar, signal.SIGKILL)
        harness.wait_for("another sidecar", lambda: sidecar_of("python3-worker-0") not in (None, sidecar))
        harness.wait_for("the pod's state", lambda: len(run.workers("python3")) == 2)
        assert run.world("python3", 2) == before and not any(gone(line["pid"]) for line in found.values())
        (tmp_path / "go").touch()
        assert run.wait() == 0, run.text()


def sidecar_of(pod):
    return next(iter(harness.pids("RINGMASTER_POD_NAME=" + pod, "ringmaster-sidecar")), None)


def test_the_first_process_that_exits_with_zero_ends_the_job_and_the_others_are_waited_for(tmp_path):
    script = ("import os, time\nif os.environ['RANK'] != '0':\n  while not os.path.exists('go'): time.sleep(0.02)\n"
              "open('ended', 'a').write(os.environ['RANK'])\n")
    with harness.Run("-np", 2, "--min-np", 1, "--backend", "none", PYTHON, "-c", script, cwd=tmp_path) as run:
        run.line("Finished")
        assert (tmp_path / "ended").read_text() == "0"
        (tmp_path / "go").touch()
        assert run.wait() == 0, run.text()
        assert (tmp_path / "ended").read_text() == "01"


def test_an_exit_code_fails_the_job_and_names_the_rank_that_failed_first(tmp_path):
    script = tmp_path / "fails.py"
    # _exit: an interpreter that ends by itself closes its connections first, and the other rank may have ended before it.
    script.write_text("import os, torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
                      "if dist.get_rank() == 1:\n    print('no such data set', flush=True)\n    os._exit(1)\n"
                      "dist.all_reduce(torch.ones(1))\n")
    with harness.Run("-np", 2, "--backend", "none", PYTHON, script, cwd=tmp_path) as run:
        assert run.wait() == 1
        assert "worker [1] ended with exit code 1" in run.text() and "no such data set" in run.text(), run.text()


# In the first view rank 1 exits with the code that it is given, and the others a little later with 1, as after a broken connection.
FAILS_FIRST = """
import os, sys, time
if os.environ["RINGMASTER_VIEW"] == "1.1":
    open("runs-" + os.environ["RANK"], "w").close()
    while len([name for name in os.listdir(".") if name.startswith("runs-")]) < 3: time.sleep(0.02)
    if os.environ["RANK"] != "1": time.sleep(0.2)
    sys.exit(int(sys.argv[1]) if os.environ["RANK"] == "1" else 1)
while not os.path.exists("go"): time.sleep(0.02)
"""


@pytest.mark.parametrize("action", ["RestartWorker", "ReplacePod"])
def test_the_errors_that_follow_an_exit_code_with_a_rule_fail_no_job(tmp_path, action):
    job = harness.manifest("rules", command=[PYTHON, "-c", FAILS_FIRST, 42], replicas=3, collectives={"backend": "None"},
                           failurePolicy__rules=[{"onExitCodes": [42], "action": action}])
    (tmp_path / "job.yaml").write_text(job)
    with harness.Run(tmp_path / "job.yaml", cwd=tmp_path) as run:
        run.world("rules", 3)
        harness.wait_for("one fault", lambda: run.job("rules")["status"].get("faults") == 1)
        (tmp_path / "go").touch()
        assert run.wait() == 0, run.text()


def test_a_script_for_horovod_is_told_that_the_job_has_no_collectives_for_it(tmp_path):
    with harness.Run("-np", 1, "--backend", "none", PYTHON, "-c", "import horovod.torch as h; h.init()", cwd=tmp_path) as run:
        assert run.wait() == 1
        assert "spec.collectives.backend is None" in run.text(), run.text()


MULTI_WORKER = """
import os, sys, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = tf.Variable(0.0)
checkpoint = tf.train.Checkpoint(weight=weight)
index = strategy.cluster_resolver.task_id
folder = os.path.abspath("checkpoints-%d" % index)  # all workers write, the chief's is kept
if tf.train.latest_checkpoint(os.path.abspath("checkpoints-0")):
    checkpoint.restore(tf.train.latest_checkpoint(os.path.abspath("checkpoints-0")))

@tf.function
def step():
    def one():
        context = tf.distribute.get_replica_context()
        weight.assign_add(context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.constant(1.0)))
    strategy.run(one)

print("begins at %d with %d" % (int(weight.numpy()), strategy.num_replicas_in_sync), flush=True)
while weight.numpy() < 40:
    step()
    if weight.numpy() % 10 == 0:
        checkpoint.save(folder + "/c")
    if weight.numpy() == 25 and index == 1 and not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), 9)
print("ended at %d" % weight.numpy(), flush=True)
"""


def test_a_script_for_tf_distribute_goes_on_from_its_checkpoint(tmp_path):
    python = tensorflow_environments.python_of(tensorflow_environments.versions()[0])
    (tmp_path / "train.py").write_text(MULTI_WORKER)
    done = harness.ringmaster("run", "-np", 2, "--backend", "none", "--plain", python, "train.py", cwd=tmp_path,
                              TMPDIR=str(tmp_path), TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"begins at 0 with 2", done.stdout) and re.search(r"begins at 20 with 2", done.stdout), done.stdout
    assert done.stdout.count("ended at 40") == 2, done.stdout
