"""Watches what a job's processes take (memory, descriptors, threads) and says which of it grows without an end.

A leak shows as growth from the first part of a run to its last: the first fifth is for caches and imports to fill, after that
things should stay where they are. Two series are judged: each process that lived for most of the run, and for each program the mean of
its processes at each moment, which tells of leaks that faults hide by ending the processes. A process that serves others (the operator has
connections to each pod) takes more where there are more, so it is compared at moments with as many processes."""
import collections
import pathlib
import statistics
import threading
import time

from processes import with_environment

Sample = collections.namedtuple("Sample", "kilobytes descriptors threads")
# More than this, and more than a quarter of what there was, is growth. Descriptors and threads come and go by a few with
# connections; memory by what the allocator keeps.
ROOM = Sample(kilobytes=24 * 1024, descriptors=24, threads=12)
SHARE = 1.25
SETTLED, BEGIN, END = 0.2, 0.4, 0.8  # of the run: the first part judged is between the first two, the last begins at the third
LEAST_SAMPLES = 20


def sample(pid):
    """What the process takes now; None: it has ended, or is somebody else's. Memory is what is its own (anonymous)."""
    try:
        status = dict(line.split(":", 1) for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines() if ":" in line)
        descriptors = sum(1 for _ in pathlib.Path("/proc/%d/fd" % pid).iterdir())
        return Sample(int(status["RssAnon"].split()[0]), descriptors, int(status["Threads"]))
    except (OSError, KeyError):
        return None


def descendants(root):
    """[(pid, program)] of the process and all that descend from it."""
    programs, parents = dict(with_environment(None)), {}
    for pid in programs:
        try:
            parents[pid] = int(pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
    found, added = {root}, True
    while added:
        added = {pid for pid, parent in parents.items() if parent in found} - found
        found |= added
    return [(pid, programs[pid]) for pid in sorted(found) if pid in programs]


class Watch:
    """Samples the processes that `find()` returns, [(pid, program)], again and again: a context."""

    def __init__(self, find, every=5.0):
        self.find = find
        self.every = every
        self.samples = collections.defaultdict(list)  # (program, pid): [(seconds, Sample)]
        self.began = time.monotonic()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def look(self):
        now = time.monotonic() - self.began
        for pid, program in self.find():
            taken = sample(pid)
            if taken:
                self.samples[program, pid].append((now, taken))

    def run(self):
        while not self.over.wait(self.every):
            self.look()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def means(samples):
    """{program: [(seconds, Sample of means)]}: of all its processes at each moment."""
    moments = collections.defaultdict(list)
    for (program, _), series in samples.items():
        for when, taken in series:
            moments[program, round(when)].append(taken)
    found = collections.defaultdict(list)
    for (program, when), all_taken in sorted(moments.items()):
        found[program].append((when, Sample(*(statistics.fmean(values) for values in zip(*all_taken)))))
    return found


def crowds(samples):
    """{second: how many processes were seen then}"""
    return collections.Counter(round(when) for series in samples.values() for when, _ in series)


def of_equal_crowds(before, after, crowd):
    """Of the samples of both parts those with the crowd that both have most of; where they share none, all."""
    sizes = [collections.Counter(crowd[round(when)] for when, _ in part) for part in (before, after)]
    common = sizes[0].keys() & sizes[1].keys()
    if not common:
        return before, after
    size = max(common, key=lambda each: min(sizes[0][each], sizes[1][each]))
    return [[(when, taken) for when, taken in part if crowd[round(when)] == size] for part in (before, after)]


def growth(series, crowd=collections.Counter()):
    """[(field, before, after)] of what has grown between the two parts of [(seconds, Sample)]. `crowd`: {second: processes}."""
    if len(series) < LEAST_SAMPLES:
        return []
    first, last = series[0][0], series[-1][0]

    def part(begin, end):
        return [(when, taken) for when, taken in series if first + begin * (last - first) <= when <= first + end * (last - first)]
    parts = of_equal_crowds(part(SETTLED, BEGIN), part(END, 1.0), crowd)
    before, after = (Sample(*(statistics.median(values) for values in zip(*(taken for _, taken in each)))) for each in parts)
    return [(field, getattr(before, field), getattr(after, field)) for field in Sample._fields
            if getattr(after, field) > getattr(before, field) + getattr(ROOM, field) and
            getattr(after, field) > getattr(before, field) * SHARE]


def judge(samples, seconds):
    """What grows in a run of `seconds`, as sentences; empty: nothing."""
    found = []
    crowd = crowds(samples)
    for (program, pid), series in sorted(samples.items()):
        if series[-1][0] - series[0][0] < 0.6 * seconds:
            continue
        found += ["%s of process %d (%s) grew from %.0f to %.0f" % (field, pid, program, before, after)
                  for field, before, after in growth(series, crowd)]
    for program, series in sorted(means(samples).items()):
        found += ["%s of a %s grew from %.0f to %.0f in the mean" % (field, program, before, after)
                  for field, before, after in growth(series, crowd)]
    return found


def table(samples):
    """For people: what each program took at the most, and how many processes of it were seen."""
    lines = ["%-24s %9s %12s %12s %8s" % ("program", "processes", "memory MiB", "descriptors", "threads")]
    for program in sorted({program for program, _ in samples}):
        taken = [one for (name, _), series in samples.items() if name == program for _, one in series]
        most = Sample(*(max(values) for values in zip(*taken)))
        count = sum(1 for name, _ in samples if name == program)
        lines.append("%-24s %9d %12.1f %12d %8d" % (program, count, most.kilobytes / 1024, most.descriptors, most.threads))
    return "\n".join(lines)
