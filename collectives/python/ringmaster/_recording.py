"""Begins and ends this rank's timeline; ringmaster.timeline reads such files."""

from ringmaster._core import call


def start_timeline(file_path, mark_cycles=False):
    """Records what this rank does until stop_timeline() or shutdown().

    file_path: where rank 0 writes; rank k writes beside it ("t.rank2.json" for "t.json").
    mark_cycles: Horovod's; the rounds of negotiation have a row of their own here, always.
    Raises ValueError if a timeline is being recorded or there can be no such file.
    Source: rm_timeline_start of ringmaster.h.
    """
    del mark_cycles
    call("rm_timeline_start", str(file_path).encode())


def stop_timeline():
    """Ends the recording; returns when all is written. Without one there is nothing to do."""
    call("rm_timeline_stop")
