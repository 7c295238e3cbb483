"""Whatever holds a job up is said in the same words by its condition, by `ringmaster why` and by the line of the run, and the events
name it. One job for each trouble that a machine alone can bring about; those of a cluster are in tests/e2e/surroundings_test.py."""

import re

import harness
from harness import Run, manifest, wait_for

PYTHON = "/usr/bin/python3"
# Waits for ever where it is started a second time.
ONCE = 'if [ -e {out}/again ]; then exec sleep 600; fi; exec {worker} {out}'
CLASSIC = """
import time, torch, ringmaster.torch as rm
rm.init()
while True:
    rm.allreduce(torch.ones(10), name="x")
    time.sleep(0.02)
"""


def once(out):
    return ["sh", "-c", ONCE.format(out=out, worker=harness.WORKER)]


def check(run, kind, reason, words):
    """The message of the condition, which has the words and stands in the first line of `why` and in the line of the run."""
    def told():
        for condition in run.job("job").get("status", {}).get("conditions", []):
            if condition["type"] == kind and condition["reason"] == reason and re.search(words, condition["message"]):
                message = condition["message"]
                return run.do("why", "job").startswith("job: %s (%s, for " % (message, reason)) and message
    message = wait_for("%s with the words %r, and `why` with the same" % (reason, words), told, alive=run.alive)
    run.line(re.escape(message))
    return message


def events(run):
    """The lines of `describe` below Events."""
    return run.do("describe", "job").split("Events:")[1]


def test_workers_that_have_not_called_init(write):
    with Run(write(manifest(command=["sleep", "600"], replicas=2, elasticPolicy__minReplicas=2))) as run:
        message = check(run, "Running", "WaitingForInit", r"^0 of 2 pods ready, .* waiting for job-worker-0, job-worker-1 \(slot 0 has not called init\(\)\)$")
        wait_for("the event", lambda: "WaitingForInit: " + message in events(run), alive=run.alive)
        assert "\njob: " + message in run.do("get")


def test_no_node_that_fits(write, tmp_path):
    text = manifest(command=[harness.WORKER, tmp_path], replicas=2, elasticPolicy__minReplicas=2,
                    worker__template__spec__nodeSelector={"gpu": "a100"})
    with Run(write(text)) as run:
        check(run, "Scheduled", "Unschedulable", r"^pods with a node: 0 of 2; job-worker-0, job-worker-1: .*didn't match Pod's node affinity/selector")
        wait_for("the event", lambda: re.search(r"! .*Unschedulable: pods with a node: 0 of 2; .*didn't match", events(run)), alive=run.alive)


def test_fewer_pods_than_min_replicas(write, tmp_path):
    with Run(write(manifest(command=once(tmp_path), replicas=2, elasticPolicy__minReplicas=2))) as run:
        run.world("job", 2)
        (tmp_path / "again").touch()
        run.do("kill", "job-worker-1")
        message = check(run, "Running", "BelowMinReplicas", r"held at the step boundary: minReplicas is 2$")
        assert re.search(r"! .*PodLost: ", events(run))
        wait_for("the event", lambda: "BelowMinReplicas: " + message in events(run), alive=run.alive)


def test_a_drain_that_can_not_go_on(write, tmp_path):
    with Run(write(manifest(command=once(tmp_path), replicas=1))) as run:
        run.world("job", 1)
        (tmp_path / "again").touch()
        said = run.do("drain", "job-worker-0")
        message = check(run, "DrainHeld", "LastWithState", r"job-worker-0 leaves when a pod that stays has joined the ring$")
        wait_for("the event", lambda: "DrainHeld, pod job-worker-0: " + message in events(run), alive=run.alive)
        assert said == "job-worker-0 stays for now: %s\n" % message


def test_pods_that_leave_and_join_where_no_step_ends(write, tmp_path):
    with Run(write(manifest(command=[harness.WORKER, tmp_path], replicas=2, worker__template__spec__terminationGracePeriodSeconds=8))) as run:
        run.world("job", 2)
        for rank in (0, 1):  # as if the script called no commit(), or stood still in it
            (tmp_path / ("absent.%d" % rank)).touch()
        run.do("scale", "job", "--replicas", "3")
        message = check(run, "NoStepEnds", "NoStepEnds",
                        r"^no step has ended since 20\S+Z: the join of job-worker-2 waits for the next state\.commit\(\) or optimizer\.step\(\)$")
        wait_for("the event", lambda: "! " in events(run) and "NoStepEnds: " + message in events(run), alive=run.alive)
        assert "\njob: %s (NoStepEnds, for " % message in run.do("get", "job")
        assert re.match(r"job-worker-1 leaves after its step; no step has ended since ", run.do("drain", "job-worker-1"))
        # Its time is over before a step ends.
        torn = r"PodDrained: epoch 1\.2: world size 1, before 2; who left did so in the middle of a step \(no step has ended since \S+: the drain of job-worker-1 and "
        wait_for("the event of the drain", lambda: re.search("! .*" + torn, events(run)), alive=run.alive)
        for rank in (0, 1):
            (tmp_path / ("absent.%d" % rank)).unlink()
        run.world("job", 3)
        wait_for("the end of it", lambda: [each["status"] for each in run.job("job")["status"]["conditions"] if each["type"] == "NoStepEnds"] == ["False"],
                 alive=run.alive)


def test_ranks_that_do_not_ask_for_a_tensor(write, tmp_path):
    with Run(write(manifest(command=[harness.WORKER, tmp_path], replicas=2, env={"HOROVOD_STALL_CHECK_TIME_SECONDS": 1}))) as run:
        run.world("job", 2)
        (tmp_path / "absent.1").touch()
        message = check(run, "RanksMissing", "RanksMissing", r"^'gradient': asked for by rank 0, not by rank 1 \(job-worker-1\), since ")
        wait_for("the event", lambda: "RanksMissing: " + message in events(run), alive=run.alive)


def test_a_script_that_can_not_be_joined(write, tmp_path):
    (tmp_path / "train.py").write_text(CLASSIC)
    with Run(write(manifest(command=[PYTHON, tmp_path / "train.py"], env={"OMP_NUM_THREADS": 1}, replicas=1))) as run:
        run.world("job", 1)
        run.do("scale", "job", "--replicas", "2")
        wait_for("why", lambda: re.search(r"job-worker-1  Running; its sidecar is Joining; can't join those who train: the script registers no state",
                                          run.do("why", "job")), alive=run.alive)
        message = check(run, "CantJoin", "NoStateRegistered", r"^job-worker-1 can't join those who train: the script registers no state ")
        wait_for("the event", lambda: "NoStateRegistered: " + message in events(run), alive=run.alive)
        run.do("scale", "job", "--replicas", "1")
        wait_for("its end", lambda: re.match(r"job trains: \d+ bytes went through collectives", run.do("why", "job")), alive=run.alive)
