"""What one rank can't pickle, or can't make, is an error on all ranks, and the job goes on."""

import threading

import torch

import ringmaster.torch as rm
from expected_errors import expect

rm.init()
rank, size = rm.rank(), rm.size()
last = size - 1


def goes_on():
    assert rm.allreduce(torch.ones(1), op=rm.Sum).item() == size


def sent_by(bad, call):
    """`call` with what can't be pickled on one rank alone, and the words of its error."""
    for unpicklable, says in ((lambda: 1, "a function: "), (threading.Lock(), "a lock: ")):
        words = "rank %d could not pickle its object, %s" % (bad, says)
        try:
            call(unpicklable if rank == bad else "fine")
            raise AssertionError("nothing was raised")
        except ValueError as error:
            assert words in str(error), error
            assert (error.__cause__ is not None) == (rank == bad)
        goes_on()


def test_broadcast_object():
    sent_by(0, lambda given: rm.broadcast_object(given, 0))
    sent_by(last, lambda given: rm.broadcast_object(given, last, name="named"))
    assert rm.broadcast_object(rank if rank == 0 else lambda: 1, 0) == 0  # only the root sends


def test_allgather_object():
    sent_by(0, rm.allgather_object)
    sent_by(last, rm.allgather_object)
    expect(ValueError, lambda: rm.allgather_object(lambda: 1), "could not pickle its object")
    holds_itself = {}
    holds_itself["itself"], holds_itself["other"] = holds_itself, lambda: 1
    expect(ValueError, lambda: rm.allgather_object(holds_itself), "its object['itself']")
    assert rm.allgather_object(rank) == list(range(size))


def test_in_a_process_set_the_rank_is_that_of_the_world():
    only = rm.add_process_set([last])
    if rank == last:
        sent_by(last, lambda given: rm.broadcast_object(given, last, process_set=only))
    else:
        goes_on(), goes_on()
    rm.remove_process_set(only)


def test_the_state_of_an_optimizer():
    class Optimizer(torch.optim.SGD):
        def state_dict(self):
            raise KeyError("momentum")

    optimizer = Optimizer([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    kind, says = (KeyError, "momentum") if rank == 0 else (
        ValueError, "rank 0 could not make what it was to send: KeyError: 'momentum'")
    expect(kind, lambda: rm.broadcast_optimizer_state(optimizer, 0), says)
    for wrong, found in ((5, "a int"), (None, "a NoneType"), (torch.optim.SGD, "the class SGD")):
        expect(ValueError, lambda: rm.broadcast_optimizer_state(wrong, 0),
               "optimizer: is %s, must be an optimizer" % found)
    goes_on()


def test_a_state():
    state = rm.elastic.ObjectState(function=(lambda: 1) if rank == 0 else None)
    expect(ValueError, state.sync,
           "rank 0 could not pickle its object['values']['function'], a function: ")
    goes_on()

    class Drawn(rm.elastic.ObjectState):
        def random_states(self):
            return {"own": threading.Lock()} if rank == last else {}

    kind, says = (TypeError, "pickle") if rank == last else (
        ValueError, "rank %d could not make what it was to send: TypeError" % last)
    expect(kind, Drawn().sync, says)
    goes_on()


for test in [value for name, value in sorted(globals().items()) if name.startswith("test_")]:
    test()
rm.shutdown()
