"""The watch tells growth from noise, and sees a real process leak."""
import pathlib
import random
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
import watch  # noqa: E402
from watch import Sample  # noqa: E402

LEAK = """
import sys
held, kept = [], []
for line in sys.stdin:
    held.append(open("/dev/null"))
    kept.append(bytearray(4 << 20))
    print("leaked", flush=True)
"""


def series(kilobytes=lambda t: 50_000, descriptors=lambda t: 20, threads=lambda t: 8, seconds=1000):
    return [(t, Sample(kilobytes(t), descriptors(t), threads(t))) for t in range(0, seconds, 5)]


def fields(found):
    return [field for field, _, _ in found]


def test_what_stays_does_not_grow():
    dice = random.Random(1)
    noisy = series(lambda t: 50_000 + dice.randint(-9_000, 9_000), lambda t: 20 + dice.randint(0, 9), lambda t: 8 + dice.randint(0, 4))
    assert watch.growth(noisy) == []


def test_what_fills_up_at_the_beginning_does_not_grow():
    assert watch.growth(series(lambda t: min(20_000 + 1_000 * t, 200_000))) == []


def test_a_slow_leak_of_each_kind_is_found():
    assert fields(watch.growth(series(kilobytes=lambda t: 50_000 + 100 * t))) == ["kilobytes"]
    assert fields(watch.growth(series(descriptors=lambda t: 20 + t // 10))) == ["descriptors"]
    assert fields(watch.growth(series(threads=lambda t: 8 + t // 20))) == ["threads"]


def test_a_leak_is_found_that_faults_hide_by_ending_processes():
    """Each process lives for 50 s and takes what the ones before left behind, say of descriptors that it inherits."""
    samples = {("worker", pid): [(t, Sample(50_000, 20 + pid * 4, 8)) for t in range(pid * 50, pid * 50 + 50, 5)] for pid in range(20)}
    assert [sentence for sentence in watch.judge(samples, 1000) if "descriptors of a worker" in sentence]


def served(leak):
    """An operator with six descriptors for each of its pods, of which there are 2 at first, then 8, and both for a while."""
    def pods(t):
        return 2 if t < 300 or t % 100 < 20 else 8
    samples = {("operator", 1): series(descriptors=lambda t: 40 + 6 * pods(t) + leak(t))}
    for pid in range(8):
        samples["sidecar", 10 + pid] = [(t, Sample(3_000, 20, 8)) for t in range(0, 1000, 5) if pid < pods(t)]
    return samples


def test_more_pods_are_no_leak_of_the_operator():
    assert watch.judge(served(lambda t: 0), 1000) == []


def test_a_leak_is_found_while_pods_come_and_go():
    assert watch.judge(served(lambda t: t // 8), 1000) == [
        "descriptors of process 1 (operator) grew from 132 to 201", "descriptors of a operator grew from 132 to 201 in the mean"]


def test_a_process_that_lived_shortly_is_no_leak():
    assert watch.judge({("sidecar", 1): series(lambda t: 1_000_000 if t > 30 else 0, seconds=45)}, 1000) == []


def test_a_real_process_that_leaks_is_found():
    with subprocess.Popen([sys.executable, "-c", LEAK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        seen = watch.Watch(lambda: [(process.pid, "leaker")])
        for turn in range(60):
            process.stdin.write("on\n")
            process.stdin.flush()
            assert process.stdout.readline() == "leaked\n"
            seen.began -= 10  # ten seconds go by between two looks
            seen.look()
        process.stdin.close()
    found = watch.judge(seen.samples, 600)
    assert any("descriptors of process %d" % process.pid in sentence for sentence in found), found
    assert any("kilobytes" in sentence for sentence in found), found
    assert "leaker" in watch.table(seen.samples)
