"""`ringmaster timeline` on a real run of four workers: while it trains, while it loses a worker, and after it has got one back."""

import json
import threading

import harness
from harness import Run, manifest, wait_for

CHANGES = 0  # the process of the picture that has the changes of the view


def rank_names(events):
    """{process: name} of the ranks."""
    return {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name" and e["pid"] != CHANGES}


def rows(events, process):
    """{row: name} of a process."""
    return {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == process}


def timeline(run, file, seconds=60):
    """The events of one, and what the command printed. What Perfetto needs is checked."""
    done = run.command("timeline", "job", "--seconds", seconds, "-o", file)
    assert done.returncode == 0, done.stderr
    events = json.loads(file.read_text())["traceEvents"]
    for event in events:
        assert event["ph"] in ("M", "X", "i") and isinstance(event["pid"], int) and isinstance(event["tid"], int), event
        if event["ph"] == "X":
            assert event["ts"] > 0 and event["dur"] > 0, event
    return events, done.stdout, done.stderr


def names(events, process, row=None):
    found = rows(events, process)
    return {e["name"] for e in events if e["pid"] == process and e["ph"] != "M" and (row is None or found[e["tid"]] == row)}


def test_four_ranks_are_one_picture_through_the_loss_of_one(write, tmp_path):
    job = manifest(command=[str(harness.WORKER), str(tmp_path)], replicas=4)
    with Run(write(job)) as run:
        run.world("job", 4)
        wait_for("steps", lambda: all(worker["step"] > 20 for worker in run.workers("job").values()))
        events, said, left_out = timeline(run, tmp_path / "before.json")
        ranks = rank_names(events)
        assert [name.split(":")[0] for name in ranks.values()] == ["rank 0", "rank 1", "rank 2", "rank 3"]
        assert left_out == "" and said.startswith("4 ranks, ")
        for process in ranks:
            assert {"steps", "rounds", "waits", "operations", "views"} <= set(rows(events, process).values())
            assert "ALLREDUCE" in names(events, process, "operations")
            assert "NEGOTIATE_ALLREDUCE" in names(events, process, "waits")
        # One clock: no rank has an operation's result before every rank has begun it.
        numbers = {}
        found = {process: rows(events, process) for process in ranks}
        for event in events:
            operation = event["ph"] != "M" and found.get(event["pid"], {}).get(event["tid"]) == "operations"
            if operation and event["name"] == "ALLREDUCE" and "number" in event["args"]:
                numbers.setdefault(event["args"]["number"], []).append((event["ts"], event["ts"] + event["dur"]))
        whole = [spans for spans in numbers.values() if len(spans) == 4]
        assert len(whole) > 10
        assert all(max(begin for begin, _ in spans) < min(end for _, end in spans) + 5 for spans in whole)

        # Asked again and again while a worker dies: every answer is one, and nothing waits for who is gone.
        over, trouble, answers = threading.Event(), [], []

        def ask():
            while not over.is_set():
                try:
                    answers.append(timeline(run, tmp_path / "during.json", seconds=5))
                except Exception as error:  # whatever it is: a thread that ends of it would fail nothing
                    trouble.append(error)
        asker = threading.Thread(target=ask)
        asker.start()
        try:
            epoch = run.job("job")["status"]["epoch"]
            run.do("kill", "job-worker-1", "--worker", "0")
            run.world("job", 4, after=epoch + 1)  # without it, and with the one that is started in its place
        finally:
            over.set()
            asker.join()
        assert trouble == [] and answers

        def rebuilt():
            seen, _, _ = timeline(run, tmp_path / "after.json")
            # A phase that took no time, as the detection of a worker's end may, is no bar.
            return seen if {"decide", "connect"} <= names(seen, CHANGES) and len(rank_names(seen)) == 4 else None
        events = wait_for("the rebuild in the picture", rebuilt, alive=run.alive)
        assert any(e["args"].get("note") == "WorkerLost" for e in events if e["pid"] == CHANGES and e["ph"] == "X")
        survivors = [process for process, name in rank_names(events).items() if "job-worker-1" not in name]
        assert len(survivors) == 3
        for process in survivors:
            phases = {name.split()[0] for name in names(events, process, "views")}
            assert {"connect", "redo", "resume", "view"} <= phases

        def late():
            (tmp_path / "absent.2").touch()
            timeline(run, tmp_path / "late.json")  # meanwhile the others wait for rank 2
            (tmp_path / "absent.2").unlink()
            return "Rank 2 (" in timeline(run, tmp_path / "late.json")[1]
        wait_for("the name of the rank that the others waited for", late, alive=run.alive)
        (tmp_path / "stop").touch()
        assert run.wait() == 0


def test_a_worker_that_keeps_no_timeline_is_named(write, tmp_path):
    shell = 'if [ "$HOROVOD_RANK" = 1 ]; then export RINGMASTER_LIVE_TIMELINE=0; fi; exec %s %s' % (harness.WORKER, tmp_path)
    with Run(write(manifest(command=["sh", "-c", shell], replicas=2))) as run:
        run.world("job", 2)
        events, said, left_out = timeline(run, tmp_path / "t.json")
        assert said.startswith("1 rank, ")
        assert len(rank_names(events)) == 1
        assert left_out.count("\n") == 1 and ": it keeps no timeline" in left_out and left_out.startswith("ringmaster: left out: job-worker-")

        done = run.command("timeline", "job", "-o", "/no/such/folder/t.json")
        assert done.returncode == 2 and "-o /no/such/folder/t.json: can't be written: No such file or directory" in done.stderr
        for seconds in ("0", "61", "x"):
            done = run.command("timeline", "job", "--seconds", seconds)
            assert done.returncode == 2 and "--seconds" in done.stderr
        assert run.command("timeline", "nobody").returncode == 1

        done = run.command("timeline", "job", "-o", "-")
        assert len(json.loads(done.stdout)["traceEvents"]) > 10 and "1 rank, " in done.stderr
        (tmp_path / "stop").touch()
        assert run.wait() == 0


def test_before_training_has_begun_there_is_nothing_to_write(write, tmp_path):
    shell = 'if [ "$HOROVOD_RANK" = 1 ]; then exec sleep 600; fi; exec %s %s' % (harness.WORKER, tmp_path)
    with Run(write(manifest(command=["sh", "-c", shell], replicas=2, elasticPolicy__minReplicas=2))) as run:
        wait_for("a worker that waits for the other one", lambda: any(pod.get("workers") for pod in run.job("job").get("status", {}).get("pods", [])),
                 alive=run.alive)
        done = run.command("timeline", "job", "-o", tmp_path / "t.json")
        assert done.returncode == 1 and done.stdout == "", done
        assert done.stderr.splitlines()[-1] == ("ringmaster: job has not begun to train: there is nothing to write yet; `why job` says what it waits for"), done.stderr
        assert not (tmp_path / "t.json").exists()
