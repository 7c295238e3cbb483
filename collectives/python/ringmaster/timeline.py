"""Timelines: what each rank does and when, as trace events that Chrome and Perfetto open.

`HOROVOD_TIMELINE=t.json` records from the beginning, start_timeline() from then on. Rank 0 writes
t.json, rank 2 t.rank2.json. To see all ranks in one picture, lay them side by side:

    python3 -m ringmaster.timeline all.json t.json t.rank*.json
"""

import argparse
import json
import os
import statistics
import sys

from ringmaster._recording import start_timeline, stop_timeline

__all__ = ["merge", "offsets", "read", "start_timeline", "stop_timeline", "views_of"]

# What merge() adds, and what no rank writes.
_ORDER = "process_sort_index"


def read(path):
    """The events of a timeline, also of one whose end is missing because its process died.

    Raises ValueError where it is none.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        events = json.loads(text)
    except ValueError:
        whole = text[:text.rfind("\n")].rstrip().rstrip(",")  # the last line may be cut
        try:
            events = json.loads(whole + "\n]")
        except ValueError as error:
            raise ValueError("%s is no timeline: %s" % (path, error)) from None
    if not _tells_its_job(events):
        raise ValueError("%s is no timeline of Ringmaster" % path)
    return events


def _tells_its_job(events):
    if not isinstance(events, list) or not events:
        return False
    if not all(isinstance(event, dict) for event in events):
        return False
    args = events[0].get("args")
    return isinstance(args, dict) and "job" in args


def views_of(events):
    """{view: when it began here, in us}: all ranks of a view enter it at the same moment."""
    return {event["args"]["view"]: event["ts"] for event in events
            if event["ph"] == "i" and event["name"].startswith("view ")}


def offsets(timelines):
    """By timeline the us by which its clock is ahead of the first one's; None: it shares no view
    with one whose clock is known, so that nothing tells.
    """
    views = [views_of(events) for events in timelines]
    known = [0.0] + [None] * (len(timelines) - 1)
    grown = True
    while grown:
        grown = False
        for i, mine in enumerate(views):
            if known[i] is not None:
                continue
            ahead = [mine[view] - theirs[view] + known[k] for k, theirs in enumerate(views)
                     if known[k] is not None for view in mine.keys() & theirs.keys()]
            if ahead:
                known[i] = statistics.median(ahead)
                grown = True
    return known


def merge(timelines):
    """One list of events, each timeline a process of its own, on the first one's clock.

    Returns (events, indices of timelines whose clock could not be compared). Raises ValueError
    if they are of different jobs.
    """
    jobs = {events[0]["args"]["job"] for events in timelines}
    if len(jobs) > 1:
        raise ValueError("the timelines are of %d jobs: %s" % (len(jobs), ", ".join(sorted(jobs))))
    merged, alone = [], []
    for process, (events, ahead) in enumerate(zip(timelines, offsets(timelines))):
        if ahead is None:
            alone.append(process)
        for event in events:
            event = dict(event, pid=process)
            if "ts" in event:
                event["ts"] -= ahead or 0.0
            merged.append(event)
        merged.append({"ph": "M", "name": _ORDER, "pid": process,
                       "args": {"sort_index": events[0]["pid"]}})  # by rank
    return merged, alone


def _refuse_to_write_over(path, timelines):
    """Raises ValueError where the file to write is one that this command reads."""
    if not os.path.isfile(path):
        return
    if _is_of_a_rank(path) or any(os.path.samefile(path, other) for other in timelines):
        raise ValueError("%s is a timeline to read and is not written over: name the file to write "
                         "first, as in all.json %s" % (path, " ".join(timelines)))


def _is_of_a_rank(path):
    try:
        return not any(event.get("name") == _ORDER for event in read(path))
    except ValueError:
        return False


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python3 -m ringmaster.timeline",
        description="Lays the timelines of several ranks side by side, on one clock: all ranks "
                    "enter a view at the same moment, so views tell how far clocks are apart.")
    parser.add_argument("out", help="file to write, for Chrome's tracing page or Perfetto")
    parser.add_argument("timelines", nargs="+", help="files that HOROVOD_TIMELINE or "
                                                     "start_timeline() made")
    given = parser.parse_args(arguments)
    try:
        events, alone = merge([read(path) for path in given.timelines])
        _refuse_to_write_over(given.out, given.timelines)
        with open(given.out, "w", encoding="utf-8") as file:
            json.dump(events, file)
    except (OSError, ValueError) as error:
        print("ringmaster.timeline: %s" % error, file=sys.stderr)
        return 1
    for process in alone:
        print("ringmaster.timeline: %s shares no view with the others: its clock is taken as it is"
              % given.timelines[process], file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
