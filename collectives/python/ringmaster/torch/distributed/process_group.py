"""ProcessGroup: torch.distributed's collectives, by those of ringmaster.torch.

Tensors are on the CPU. Calls of the ranks belong together by their order, as torch.distributed has
it: names are counted for each group and kind of operation.
"""

import contextlib
import weakref

import torch
import torch.distributed as dist

from ringmaster import _core, _in_flight, _library
from ringmaster._library import Request
from ringmaster.elastic import is_running
from ringmaster.errors import HostsUpdatedInterrupt, RootLostError
from ringmaster.process_sets import add_process_set, global_process_set
from ringmaster.reductions import Average, Max, Min, Product, Sum
from ringmaster.torch import starting, transfers
from ringmaster.torch.distributed.work import KeptWorks, Work

NAME = "ringmaster"

# A script that never ends a step counts for ever; names that come again are agreed on faster. 120
# has many divisors, so that a script with so many operations in each iteration gives each of them
# the same names every time.
NAMES = 120


class WorldChangedError(HostsUpdatedInterrupt):
    """The world has changed, and this operation can't be finished in the new one: its results have
    another number of ranks, or its source is gone. All ranks that took part raise it; elastic.run
    then enters the training function again.
    """
    within_step = True

    def __init__(self, message):
        super().__init__(skip_sync=True)
        self.args = (message,)


def _counts_by_steps():
    """Whether ranks are those of a step's beginning. In a script that ends no steps they are those
    of the moment: else they would be for ever those of who was there at its beginning.
    """
    return not _core.is_joining() and (is_running() or _core.ends_steps())


def number_of_ranks():
    """The number of the view that ranks and sizes of groups are of."""
    return _core.library().rm_step_epoch() if _counts_by_steps() else _core.view().number


class ProcessGroup(dist.ProcessGroup):
    """All ranks, or those of a process set.

    Rank and size are those that the group's calls mean, because torch.distributed itself decides by
    rank() who is a call's root: a fault within a step does not move them.
    """

    def __init__(self, process_set=global_process_set):
        self.process_set = process_set
        self.view = number_of_ranks()
        self._works = weakref.WeakValueDictionary()  # by name
        self._kept = KeptWorks()
        # Of a process set: all workers that it was made of, by their ranks in it.
        self._made_of = self._workers_at_first() if process_set.number() else ()
        self._group_name = NAME
        super().__init__(self.rank(), self.size())

    # ---- Who

    def rank(self):
        """-1 on a worker that is not in the group."""
        if not _counts_by_steps():
            return self.process_set.rank() if self.process_set.number() else _core.rank()
        workers, me = self._workers_of_calls(), _core.name_of(_core.SELF)
        return workers.index(me) if me in workers else -1

    def size(self):
        if not _counts_by_steps():
            return self.process_set.size() if self.process_set.number() else _core.size()
        return len(self._workers_of_calls())

    # For C++, in versions of torch that ask.
    getRank = rank
    getSize = size

    def name(self):
        return NAME

    def _set_group_name(self, name):
        self._group_name = name

    @property
    def group_name(self):
        """By which torch.distributed finds the group."""
        return self._group_name

    getGroupName = group_name.fget

    getBackendName = _get_backend_name = name

    def _get_backend(self, device):
        """Newer versions of torch ask what is behind a group for a kind of device, to learn from its
        attributes what it can do beyond the calls that all have: nothing.
        """
        del device
        return self

    def new_group(self, ranks, timeout=None, backend=None, pg_options=None, group_name=None,
                  group_desc=None):
        """Newer versions of torch call it on all ranks. None on a rank that isn't in it."""
        del timeout, backend, pg_options, group_desc
        group = group_of(ranks)
        if group is not None and group_name:
            group._set_group_name(group_name)
        return group

    # ---- Reductions

    def allreduce(self, tensors, opts=None):
        return self._reduce_all("allreduce", tensors, opts)

    def allreduce_coalesced(self, tensors, opts=None):
        return self._reduce_all("allreduce_coalesced", tensors, opts)

    def _reduce_all(self, kind, tensors, opts):
        op = _op_of(opts)
        names = self._names(kind, len(tensors))
        handle = starting.start_allreduces(tensors, names, op, 1.0, 1.0, self.process_set,
                                           in_place=True)
        return self._work(names[0], handle, tensors)

    def reduce(self, tensors, opts=None):
        """Only the root has the result."""
        tensor, = tensors
        root = self._is_root(opts.rootRank, "dst")
        names = self._names("reduce", 1)
        handle = starting.start_allreduces([tensor], names, _op_of(opts), 1.0, 1.0,
                                           self.process_set)
        return self._work(names[0], handle, tensors,
                          lambda results: tensor.copy_(results[0]) if root else None)

    def reduce_scatter(self, outputs, inputs, opts=None):
        output, = outputs
        parts, = inputs
        self._check_parts("input_list", parts)
        stacked = torch.stack([part.detach().reshape(-1) for part in parts])
        return self._scatter_reduced(output, stacked, opts)

    def _reduce_scatter_base(self, output, source, opts=None):
        size = self.size()
        if source.numel() != output.numel() * size:
            raise ValueError("input: has %d elements, must have %d, those of the output for each "
                             "of %d ranks" % (source.numel(), output.numel() * size, size))
        return self._scatter_reduced(output, source.detach().reshape(size, -1), opts)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        return self._all_of([self._reduce_scatter_base(output, source, opts)
                             for output, source in zip(outputs, inputs)], outputs)

    def _scatter_reduced(self, output, rows, opts):
        rows_by_rank = []
        names = self._names("reduce_scatter", 1)
        handle = starting.start_reducescatters([rows], names, _op_of(opts), 1.0, 1.0,
                                               self.process_set, [rows_by_rank])

        def finish(results):
            # With fewer ranks the rows are shared out anew, and what comes here is another one.
            _check_ranks(len(rows_by_rank), len(rows))
            _fill(output, results[0])

        return self._work(names[0], handle, [output], finish)

    # ---- Copies

    def broadcast(self, tensors, opts=None):
        tensor, = tensors
        root = self._worker_at(opts.rootRank if opts is not None else 0, "src")
        names = self._names("broadcast", 1)
        handle = starting.start_broadcast(tensor, root, names[0], self.process_set)
        return self._work(names[0], _OtherMayGo(handle), tensors)

    def allgather(self, outputs, inputs, opts=None):
        del opts
        targets, = outputs
        source, = inputs
        return self._gather(targets, source, "allgather", len(targets))

    def _gather(self, targets, source, kind, room):
        """`targets`: None where nobody wants the result. `room`: for how many ranks somebody has
        room; None: not known.
        """
        rows = []
        names = self._names(kind, 1)
        handle = starting.start_allgathers([source.detach().reshape(-1)], names, self.process_set,
                                           [rows])

        def finish(results):
            if room is not None:  # also where nothing is filled: all ranks raise it, or none
                _check_ranks(len(rows), room)
            if targets is not None:
                _fill_all(targets, results[0], rows)

        return self._work(names[0], handle, targets or [], finish)

    def _allgather_base(self, output, source, opts=None):
        del opts
        names = self._names("allgather_base", 1)
        handle = starting.start_allgathers([source.detach().reshape(-1)], names, self.process_set)
        return self._work(names[0], handle, [output], lambda results: _fill(output, results[0]))

    def allgather_coalesced(self, outputs, inputs, opts=None):
        """`outputs`: for each rank a list with a tensor for each input."""
        self._check_parts("output_tensor_lists", outputs)
        return self._all_of([self.allgather([[of_rank[i] for of_rank in outputs]], [source], opts)
                             for i, source in enumerate(inputs)], outputs)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        return self._all_of([self._allgather_base(output, source, opts)
                             for output, source in zip(outputs, inputs)], outputs)

    def gather(self, outputs, inputs, opts=None):
        """Only the root has the result."""
        source, = inputs
        if self._is_root(opts.rootRank, "dst"):
            return self._gather(outputs[0], source, "gather", len(outputs[0]))
        return self._gather(None, source, "gather", self._room_at_root())

    def scatter(self, outputs, inputs, opts=None):
        output, = outputs
        parts = []
        if self._is_root(opts.rootRank, "src"):
            parts, = inputs
            self._check_parts("scatter_list", parts)
        name, handle = self._start_exchange("scatter", parts, output.dtype)

        def finish(result):
            values, _ = result  # the root's alone: the others have sent nothing
            if not len(values) and output.numel():
                raise WorldChangedError("rank %d, which was to scatter, is gone" % opts.rootRank)
            _fill(output, values)

        return self._work(name, handle, [output], finish)

    def alltoall(self, outputs, inputs, opts=None):
        del opts
        self._check_parts("input_tensor_list", inputs)
        name, handle = self._start_exchange("alltoall", inputs, outputs[0].dtype)
        return self._work(name, handle, outputs,
                          lambda result: _fill_all(outputs, result[0], result[1].tolist()))

    def alltoall_base(self, output, source, output_splits, input_splits, opts=None):
        del opts
        ranks = self.size()
        if not input_splits and source.shape[0] % ranks:
            raise ValueError("input: has %d rows, must be divisible by the %d ranks or have "
                             "input_split_sizes" % (source.shape[0], ranks))
        splits = list(input_splits) or [source.shape[0] // ranks] * ranks
        name, = self._names("alltoall_base", 1)
        handle = starting.start_alltoall(source, splits, name, self.process_set)

        def finish(result):
            rows, received = result
            wanted = list(output_splits) or [output.shape[0] // len(received)] * len(received)
            if received.tolist() != wanted:
                raise WorldChangedError("the ranks have sent %s rows, there is room for %s"
                                        % (received.tolist(), wanted))
            _fill(output, rows)

        return self._work(name, handle, [output], finish)

    def _start_exchange(self, kind, sends, dtype):
        """Tensors of any shapes, by rank; none: nothing is sent. Returns name and handle."""
        flat = [part.detach().reshape(-1) for part in sends]
        source = torch.cat(flat) if flat else torch.empty(0, dtype=dtype)
        splits = [part.numel() for part in flat] or [0] * self.size()
        name, = self._names(kind, 1)
        return name, starting.start_alltoall(source, splits, name, self.process_set)

    def _check_parts(self, field, parts):
        size = self.size()
        if len(parts) != size:
            raise ValueError("%s: has %d tensors, must have one for each of %d ranks"
                             % (field, len(parts), size))

    def _room_at_root(self):
        """For how many ranks the root of a gather has room; None: for those of a moment that only
        the root knows.
        """
        return self.size() if _counts_by_steps() else None

    def gather_single(self, output, source, opts=None):
        """gather() into one tensor; what the others give as `output` is left alone."""
        root = self._is_root(opts.rootRank, "dst")
        room = self._room_at_root()
        rows = []
        names = self._names("gather_single", 1)
        handle = starting.start_allgathers([source.detach().reshape(-1)], names, self.process_set,
                                           [rows])

        def finish(results):
            if room is not None:
                _check_ranks(len(rows), room)
            if root:
                _fill(output, results[0])

        return self._work(names[0], handle, [output] if root else [], finish)

    # Names of newer versions of torch.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base
    gather_into_tensor = gather_single

    # ---- Between two ranks

    def send(self, tensors, dst, tag=0):
        """To a rank of the group, which has to call recv() with the same tag."""
        tensor, = tensors
        return self._transfer(transfers.start_send, tensor, dst, "dst", tag)

    def recv(self, tensors, src, tag=0):
        tensor, = tensors
        return self._transfer(transfers.start_recv, tensor, src, "src", tag)

    def recv_anysource(self, tensors, tag=0):
        raise NotImplementedError("src: is None, must be a rank: the backend ringmaster receives "
                                  "from a rank that is named")

    def _transfer(self, start, tensor, rank, field, tag):
        """`rank`: of the group, also in a script that ends no steps as of the first one."""
        workers = self._workers_of_step()
        me = _core.own_worker()
        if not 0 <= rank < len(workers) or workers[rank] == me:
            raise ValueError("%s: is %d, must be another rank of the group, 0 to %d"
                             % (field, rank, len(workers) - 1))
        handle = start(tensor, workers[rank], tag, self.process_set,
                       space="torch.%d." % self.process_set.number())
        return self._kept.keep(Work(handle, [tensor]))

    def _workers_of_step(self):
        """The group's workers, by what their ranks mean in this step's calls. A joiner enters
        first.
        """
        _core.enter()
        workers = _core.workers_of_calls()
        if not self.process_set.number():
            return workers
        # A worker that was dropped and let in again is in its sets again.
        return [worker for worker in workers if worker in self._made_of]

    def _workers_now(self):
        while True:  # until nothing moved between the first look and the last
            before = _core.view().number
            workers = [_core.name_of(rank) for rank in self.process_set.ranks]
            if _core.view().number == before:
                return workers

    def _workers_at_first(self):
        """Who the ranks meant with which the set has just been added: the same on all ranks."""
        workers = _core.workers_of_calls()
        return [workers[rank] for rank in self.process_set.ranks_when_added()]

    def _workers_of_calls(self):
        """Which worker a rank of the group means in a collective."""
        if _counts_by_steps() or _core.is_joining():
            return self._workers_of_step()
        return self._workers_now()

    def _worker_at(self, rank, field):
        """The worker that this rank of the group means in a collective."""
        workers = self._workers_of_calls()
        if not 0 <= rank < len(workers):
            raise ValueError("%s: is %d, must be 0 to %d" % (field, rank, len(workers) - 1))
        return workers[rank]

    def _is_root(self, rank, field):
        return self._worker_at(rank, field) == _core.own_worker()

    # ---- Others

    def barrier(self, opts=None):
        del opts
        name, = self._names("barrier", 1)
        request = Request(_library.BARRIER, name, self.process_set.number())
        operation = _in_flight.submit(request, None)
        return self._work(name, _in_flight.Handle(operation, lambda _: None), [])

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        del timeout, wait_all_ranks
        self.barrier().wait()

    def set_timeout(self, timeout):
        """Nothing waits for ever: the job's deadlines end what a rank waits for."""

    def _set_sequence_number_for_group(self):
        pass

    def _get_sequence_number_for_group(self):
        return 0

    def _set_default_backend(self, backend_type):
        pass

    def shutdown(self):
        """Of the group alone; the job ends with ringmaster.shutdown() or with the process."""

    def abort(self):
        pass

    # ---- Names and works

    def _names(self, kind, count):
        """A joiner enters first: it agrees with the others from then on."""
        _core.enter()
        base = _core.auto_name("torch.%d.%s" % (self.process_set.number(), kind), NAMES)
        names = [("%s.%d" % (base, index)).encode() for index in range(count)]
        before = self._works.get(names[0])
        if before is not None and not before.is_completed():
            _await(before)
        return names

    def _work(self, name, handle, tensors, finish=None):
        work = Work(handle, tensors, finish)
        self._works[name] = work
        return self._kept.keep(work)

    def _all_of(self, works, results):
        handles = [_Waits(work) for work in works]
        return self._kept.keep(Work(_in_flight.GroupHandle(handles), results))


class _Waits:
    """A Work as a handle."""

    def __init__(self, work):
        self.wait, self.done = work.wait, work.is_completed


class _OtherMayGo:
    """Of a broadcast: the loss of the worker that it is from is a change of the world, on all ranks.
    """

    def __init__(self, handle):
        self._handle = handle
        self.done = handle.done

    def wait(self):
        try:
            return self._handle.wait()
        except RootLostError as error:
            raise WorldChangedError(str(error)) from error


def _await(work):
    """Its error is for who waits for it, not for who needs its name."""
    try:
        work.wait()
    except Exception:
        pass


def _op_of(opts):
    wanted = dist.ReduceOp.SUM if opts is None else opts.reduceOp
    known = [(dist.ReduceOp.SUM, Sum), (dist.ReduceOp.AVG, Average), (dist.ReduceOp.MIN, Min),
             (dist.ReduceOp.MAX, Max), (dist.ReduceOp.PRODUCT, Product)]
    for name, op in known:
        if wanted == name:
            return op
    raise ValueError("op: is %s, must be SUM, AVG, MIN, MAX or PRODUCT with the backend ringmaster"
                     % wanted)


def _check_ranks(took_part, room):
    if took_part != room:
        raise WorldChangedError("%d ranks took part, there is room for %d" % (took_part, room))


def _fill(target, values):
    if target.numel() != values.numel():
        raise WorldChangedError("the ranks that took part have given %d elements, there is room "
                                "for %d" % (values.numel(), target.numel()))
    target.detach().copy_(values.reshape(target.shape))


def _fill_all(targets, values, lengths):
    """`values`: of all ranks one after the other. A target of None takes nothing."""
    _check_ranks(len(lengths), len(targets))
    for target, part in zip(targets, values.split(lengths)):
        if target is not None:
            _fill(target, part)


_agreed = None  # (ranks, process set) that all ranks have added for the group that is being made


@contextlib.contextmanager
def agreed(ranks):
    """All ranks make a group's process set, which group_of() then finds, on members alone or not.
    """
    global _agreed
    _agreed = sorted(ranks), add_process_set(sorted(ranks))
    try:
        yield
    finally:
        _agreed = None


def group_of(ranks):
    """The group of some ranks; on a rank that isn't in it None."""
    if _agreed is not None and _agreed[0] == sorted(ranks):
        process_set = _agreed[1]
    else:
        process_set = add_process_set(sorted(ranks))
    return ProcessGroup(process_set) if process_set.included() else None
