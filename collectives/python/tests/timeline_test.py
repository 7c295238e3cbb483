"""Timelines of real workers, and of several ranks laid side by side."""

import json
import os
import subprocess
import sys

import pytest

from ringmaster import timeline


def names(events):
    return {event["name"] for event in events}


def test_ATimelineOfTwoRanksShowsWhoWaitedForWhomThroughADeathAndAJoin(job, tmp_path):
    one = job("horovod_elastic.py", 3, BATCHES="150", HOROVOD_TIMELINE=str(tmp_path / "t.json"), spares=[2])
    one.wait_world([0, 1, 2], step=10)
    one.kill(2)
    one.wait_world([0, 1], step=20)
    one.admit(2)
    one.wait_world([0, 1, 2])
    codes = one.wait()
    assert {key: code for key, code in codes.items() if code} == {(2, 1): -9}, one.logs()

    files = ["t.json", "t.rank1.json", "t.rank2.json", "t.rank2-2.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)
    first = timeline.read(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()), "of a rank that ended well the file is whole"
    assert {"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "STEP_END", "round"} <= names(first)
    phases = {"decide", "stop", "connect", "redo", "resume"}
    rebuilt = [event for event in first if event["name"].split()[0] in phases]
    assert {event["name"].split()[0] for event in rebuilt} == phases
    assert all(event["ph"] == "X" for event in rebuilt)
    assert len(timeline.views_of(first)) == 3
    # The one that was killed: what it had written is read.
    assert "ALLREDUCE" in names(timeline.read(tmp_path / "t.rank2.json"))

    out = tmp_path / "all.json"
    assert timeline.main([str(out), *(str(tmp_path / name) for name in files)]) == 0
    together = json.loads(out.read_text())
    assert {event["pid"] for event in together} == {0, 1, 2, 3}
    shown = {event["args"]["name"] for event in together if event["name"] == "process_name"}
    assert len(shown) == 4 and any("rank 2" in name for name in shown)


def test_AScriptRecordsWhatItAsksFor(job, tmp_path):
    one = job("timelines.py", 2, TIMELINE=str(tmp_path / "t.json"))
    codes = one.wait()
    assert set(codes.values()) == {0}, one.logs()
    for name in ("t.json", "t.rank1.json"):
        rows = {event["args"]["name"] for event in timeline.read(tmp_path / name)
                if event["name"] == "thread_name"}
        assert [row for row in sorted(rows) if "grad" in row] == ["allreduce.grad.1"]
        steps = [event for event in timeline.read(tmp_path / name) if event["name"].startswith("step ")]
        assert 8 <= len(steps) <= 10


def test_AFileThatCannotBeWrittenStopsNoTraining(job, tmp_path):
    one = job("plain.py", 2, HOROVOD_TIMELINE=str(tmp_path / "missing" / "t.json"))
    codes = one.wait()
    assert set(codes.values()) == {0}, one.logs()
    assert "HOROVOD_TIMELINE" in one.logs() and "missing/t.json" in one.logs()


def made(job, rank, *events):
    return [{"ph": "M", "name": "process_name", "pid": rank, "args": {"name": "rank", "job": job}},
            *events]


def view(number, at):
    return {"ph": "i", "name": "view 1.%d (PodLost)" % number, "ts": at, "pid": 0,
            "args": {"view": number}}


def test_ClocksAreComparedByTheViewsThatRanksShare():
    timelines = [made("a", 0, view(1, 100.0), view(2, 200.0)), made("a", 1, view(1, 1100.0), view(3, 1300.0)),
                 made("a", 2, view(3, 5300.0)), made("a", 3, view(9, 7.0))]
    assert timeline.offsets(timelines) == [0.0, 1000.0, 5000.0, None]
    events, alone = timeline.merge(timelines)
    assert alone == [3]
    assert [event["ts"] for event in events if event["ph"] == "i"] == [100, 200, 100, 300, 300, 7]


def test_TimelinesOfTwoJobsAreRefused():
    with pytest.raises(ValueError, match="2 jobs"):
        timeline.merge([made("a", 0), made("b", 0)])


def test_WhatIsNoTimelineIsNamed(tmp_path, capsys):
    (tmp_path / "other.json").write_text('[{"ph": "X"}]')
    assert timeline.main([str(tmp_path / "out.json"), str(tmp_path / "other.json")]) == 1
    assert "other.json is no timeline" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()
    assert timeline.main([str(tmp_path / "out.json"), str(tmp_path / "gone.json")]) == 1


@pytest.mark.parametrize("text", ["[1]", "[[]]", "{}", "[]", '[{"args": 1}]', '[{"args": {"job": 3}}, 4]'])
def test_JsonOfAnotherShapeIsNoTimeline(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ValueError, match="other.json is no timeline of Ringmaster"):
        timeline.read(tmp_path / "other.json")


def test_ATimelineIsNotWrittenOver(tmp_path, capsys):
    first, second, link = (tmp_path / name for name in ("t.json", "t.rank1.json", "link.json"))
    for rank, file in enumerate((first, second)):
        file.write_text(json.dumps(made("a", rank)))
    link.symlink_to(first)
    before = first.read_text()
    for words in ([first, first, second], [first, second], [link, first, second]):
        assert timeline.main(list(map(str, words))) == 1
        said = capsys.readouterr().err
        assert "%s is a timeline to read and is not written over" % words[0] in said
        assert "first, as in all.json %s" % words[1] in said
    assert first.read_text() == before
    # What was written before is written anew, and so is a file that is no timeline.
    out = tmp_path / "all.json"
    out.write_text("old")
    for _ in range(2):
        assert timeline.main(list(map(str, [out, first, second]))) == 0
    assert timeline.main([str(out), str(out)]) == 1  # nor one of several ranks that is read
    assert {event["pid"] for event in json.loads(out.read_text())} == {0, 1}


def test_TheCommandOfTheDocsSaysNothingOfModules():
    folder = os.path.dirname(os.path.dirname(timeline.__file__))
    done = subprocess.run([sys.executable, "-B", "-m", "ringmaster.timeline", "--help"],
                          capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, PYTHONPATH=folder))
    assert (done.returncode, done.stderr) == (0, "")


def test_AFileThatWasCutIsRead(tmp_path):
    whole = "[\n%s,\n%s" % (json.dumps(made("a", 0)[0]), json.dumps(view(1, 5.0)))
    for tail in ("", ",\n{\"ph\":\"X\",\"na", ",\n"):
        (tmp_path / "t.json").write_text(whole + tail)
        assert len(timeline.read(tmp_path / "t.json")) >= (2 if tail else 1)
