"""Judges a run of elastic_worker by what its workers have written and by nothing else (tests/integration/elastic_worker.cc says
what the lines are). A line stands for a completed step."""
import collections
import pathlib

Line = collections.namedtuple("Line", "step epoch rank size ns hash")
SHOWN = 5  # findings of a kind


def parse(text):
    """The line; None for one that a kill has cut."""
    words = text.split()
    return Line(*map(int, words[:5]), words[5]) if len(words) == 6 and len(words[5]) == 16 else None


def read(folder):
    """{worker: [Line]}, in the order in which each wrote them."""
    logs = {}
    for path in sorted(pathlib.Path(folder).glob("*.log")):
        parsed = [parse(text) for text in path.read_text(errors="replace").split("\n")[:-1]]
        logs[path.stem] = [line for line in parsed if line]
    return logs


def came_back(before, after):
    """A worker that was out of a view by mistake returns with the others' state: at least two views lie between its lines."""
    return after.step > before.step and after.epoch >= before.epoch + 2


def order(logs):
    """Each worker's steps follow each other."""
    for worker, lines in logs.items():
        for before, after in zip(lines, lines[1:]):
            if after.epoch < before.epoch:
                yield "worker %s went back from view %d to %d" % (worker, before.epoch, after.epoch)
            if after.step != before.step + 1 and not came_back(before, after):
                yield "worker %s: step %d follows step %d" % (worker, after.step, before.step)


def divergence(logs):
    """All copies of the state are the same after every step, and in a view no two workers have a rank."""
    hashes, ranks = collections.defaultdict(set), collections.Counter()
    for worker, lines in logs.items():
        for line in lines:
            hashes[line.step].add(line.hash)
            ranks[line.step, line.epoch, line.rank] += 1
    for step in sorted(step for step, values in hashes.items() if len(values) > 1):
        yield "after step %d there are %d different states" % (step, len(hashes[step]))
    for step, epoch, rank in sorted(key for key, count in ranks.items() if count > 1):
        yield "step %d: several workers were rank %d of view %d" % (step, rank, epoch)


def lost(logs):
    """What a worker has completed, also one that died right after it, is in what later views go on with."""
    first, last = {}, {}
    for line in (line for lines in logs.values() for line in lines):
        first[line.epoch] = min(first.get(line.epoch, line.step), line.step)
        last[line.epoch] = max(last.get(line.epoch, 0), line.step)
    if not first:
        yield "no step was completed"
        return
    reached = 0
    for epoch in sorted(first):
        # The step that a fault has interrupted is completed by some in the old view and by others in the new one.
        if first[epoch] < reached:
            yield "view %d begins with step %d, but step %d was completed before it" % (epoch, first[epoch], reached)
        reached = max(reached, last[epoch])
    steps = {line.step for lines in logs.values() for line in lines}
    missing = sorted(set(range(1, max(steps) + 1)) - steps)
    if missing:
        yield "%d steps were completed by nobody, such as %d" % (len(missing), missing[0])


def judge(logs):
    """[(kind, sentence)] of what is wrong."""
    found = []
    for kind, check in (("order", order), ("divergence", divergence), ("lost", lost)):
        sentences = list(check(logs))
        found += [(kind, sentence) for sentence in sentences[:SHOWN]]
        if len(sentences) > SHOWN:
            found.append((kind, "and %d more" % (len(sentences) - SHOWN)))
    return found


def completions(logs):
    """Times in ns, rising, at which the first worker had completed a step that nobody had before."""
    first = {}
    for line in (line for lines in logs.values() for line in lines):
        first[line.step] = min(first.get(line.step, line.ns), line.ns)
    return sorted(first.values())


def longest_pause(times, begin, end):
    """Of the gaps between completions that touch (begin, end); None where there is none."""
    gaps = [b - a for a, b in zip(times, times[1:]) if b > begin and a < end]
    return max(gaps) / 1e9 if gaps else None
