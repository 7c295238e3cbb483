"""The judge finds what is wrong: each case is a right log with one thing spoilt."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judge  # noqa: E402
from judge import Line  # noqa: E402


def right():
    """Three workers; c dies after step 4, and d comes for it at step 7. b is dropped by mistake and back at step 9."""
    def line(step, epoch, rank, size):
        return Line(step, epoch, rank, size, step * 1000 + rank, "%016x" % (step * 7919))
    return {
        "a": [line(s, 1, 0, 3) for s in range(1, 5)] + [line(s, 2, 0, 2) for s in range(5, 7)] + [line(7, 3, 0, 3)]
             + [line(8, 4, 0, 2)] + [line(s, 5, 0, 3) for s in range(9, 11)],
        "b": [line(s, 1, 1, 3) for s in range(1, 5)] + [line(s, 2, 1, 2) for s in range(5, 7)] + [line(7, 3, 1, 3)]
             + [line(s, 5, 2, 3) for s in range(9, 11)],
        "c": [line(s, 1, 2, 3) for s in range(1, 5)],
        "d": [line(7, 3, 2, 3), line(8, 4, 1, 2)] + [line(s, 5, 1, 3) for s in range(9, 11)]}


def kinds(logs):
    return {kind for kind, _ in judge.judge(logs)}


def test_a_right_run_is_right():
    assert judge.judge(right()) == []


@pytest.mark.parametrize("kind, spoil", [
    ("divergence", lambda logs: logs["d"].__setitem__(0, logs["d"][0]._replace(hash="f" * 16))),
    ("divergence", lambda logs: logs["c"].__setitem__(3, logs["c"][3]._replace(hash="f" * 16))),
    ("divergence", lambda logs: logs["d"].__setitem__(0, logs["d"][0]._replace(rank=0))),
    ("order", lambda logs: logs["a"].pop(2)),
    ("order", lambda logs: logs["b"].insert(2, logs["b"][2])),
    ("order", lambda logs: logs["a"].__setitem__(5, logs["a"][5]._replace(epoch=1))),
    ("lost", lambda logs: [lines.__setitem__(slice(None), [line for line in lines if line.step != 8]) for lines in logs.values()]),
    # The job has begun again with a state in which a step that somebody had completed is not.
    ("lost", lambda logs: logs.update(e=[logs["a"][-1]._replace(step=3, epoch=6, hash=logs["a"][2].hash)])),
    ("lost", lambda logs: logs.clear()),
])
def test_what_is_spoilt_is_found(kind, spoil):
    logs = right()
    spoil(logs)
    assert kind in kinds(logs)


def test_a_line_that_a_kill_has_cut_is_no_line(tmp_path):
    (tmp_path / "1.log").write_text("1 1 0 1 5 %016x\n2 1 0 1 6 %016x" % (1, 2))
    assert [line.step for line in judge.read(tmp_path)["1"]] == [1]


def test_the_longest_pause_is_one_that_touches_the_fault():
    times = [0, 10, 500, 510, 520, 2_000_000_520]
    assert judge.longest_pause(times, 100, 515) == pytest.approx(490e-9)
    assert judge.longest_pause(times, 515, 600) == pytest.approx(2.0)
    assert judge.longest_pause(times, 3_000_000_000, 4_000_000_000) is None


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
