/* The C ABI of the Ringmaster collectives library.
 *
 * The library has two layers (docs/collectives.md). This header is the *engine*: it takes named
 * tensors in any order from any thread, negotiates which of them all ranks have asked for, fuses
 * them, and recovers in place when a worker dies. Below it is the *communicator*
 * (ringmaster/communicator.h), which runs collectives on the caller's thread in the order of the
 * calls and never recovers.
 *
 * Every function is safe to call from any thread unless it says otherwise. Functions that can fail
 * return rm_status; rm_last_error() then gives the calling thread a sentence for people. Any of
 * them may return RM_ERR_SHUTDOWN (not initialised), RM_ERR_FORKED, RM_ERR_OUT_OF_MEMORY or
 * RM_ERR_INTERNAL; beside each function stand the errors that are particular to it. A timeout is in
 * seconds; 0 or less is none. No function calls abort(), and every wait ends: with the result, or
 * with an error when its timeout has passed or the job is over. Without a timeout rm_init, rm_enter
 * and rm_shutdown wait under a sidecar for as long as the job goes on, because a step, an
 * evaluation on one rank or the job's own limit (initTimeoutSeconds) may be of any length; that the
 * sidecar is gone for good ends them, too. Where there is no sidecar they wait for 600 seconds.
 */
#ifndef RINGMASTER_RINGMASTER_H_
#define RINGMASTER_RINGMASTER_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ringmaster/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RM_ABI_VERSION 1

typedef uint64_t rm_handle; /* 0 is never a valid handle */

RM_API int rm_abi_version(void);
RM_API const char* rm_version(void);    /* "0.1.0" */
RM_API const char* rm_last_error(void); /* of the calling thread; valid until its next call */
RM_API const char* rm_status_name(rm_status status); /* "RM_ERR_MISMATCH" */
RM_API size_t rm_dtype_size(rm_dtype dtype);         /* bytes; 0 for an unknown type */

/* ---- Beginning and end
 * ------------------------------------------------------------------------------------------ */

/* Makes this process a worker of its job. If the library is initialised already, the call does
 * nothing.
 *
 * Where RINGMASTER_SOCKET is set the call connects to the sidecar (docs/contracts.md lists this and
 * the other variables). A bootstrapping worker then blocks until the first view is installed; if
 * the job begins without it, it becomes a joiner. A joiner (a restarted worker, or one of a new
 * pod) returns at once with rm_is_joining() == 1 and enters with rm_enter() or with its first
 * collective. A standby blocks until it takes the place of a dead worker, which no timeout ends,
 * and is a joiner then.
 *
 * Without RINGMASTER_SOCKET the world is the processes that an MPI launcher (mpirun, mpiexec, srun:
 * docs/horovod.md) has started, and the call blocks until all of them have come; without such a
 * launcher the world is this process alone.
 *
 * After rm_shutdown see there. RM_ERR_INVALID: a variable of the environment is wrong.
 * RM_ERR_UNAVAILABLE: there is no sidecar (said after 600 seconds where there is no timeout) or no
 * port, or MPI is demanded and there is none, or NCCL and what there is of it can't be used (where
 * it may still come with a framework, the first tensor on a GPU has this error). RM_ERR_TIMEOUT:
 * the timeout has passed. */
RM_API rm_status rm_init(double timeout_seconds);
/* 1 between a successful rm_init and rm_shutdown, otherwise 0. */
RM_API int rm_initialized(void);

/* The version of NCCL that this process can use: 22703 is 2.27.3. 0: there is none, and
 * rm_last_error says why (no GPU, no libcudart, no libnccl); tensors on GPUs are then refused or go
 * through the host's memory. Works before rm_init, too. */
RM_API int rm_nccl_version(void);

/* 1: there is an MPI by which collectives can go where an MPI launcher starts the ranks
 * (RINGMASTER_BACKEND=mpi, docs/horovod.md). It is loaded, but not initialised. 0: there is none,
 * and rm_last_error says why. Works before rm_init, too. */
RM_API int rm_mpi_built(void);
/* 0: the collectives of this worker don't go by MPI. 1: they do. 2: they do, and the script may
 * call MPI, too, from any thread. */
RM_API int rm_mpi_enabled(void);

/* 1 while this worker is registered but in no view yet; rm_rank, rm_size and the like then return
 * what they will probably be. */
RM_API int rm_is_joining(void);

/* A joiner blocks until it is in a view, which it enters at a step boundary, and has loaded the
 * job's state. For a worker that is in a view the call does nothing. A joiner that has registered
 * no state is not let in: it waits, whatever the timeout, until the job ends or begins anew.
 * RM_ERR_NO_STATE, RM_ERR_MISMATCH: the state that is registered here is not the job's.
 * RM_ERR_UNAVAILABLE: the sidecar has not been heard for 600 seconds. After RM_ERR_TIMEOUT call it
 * again: a worker that is let in while it doesn't wait here holds the others up, for 10 seconds,
 * after which they go on without it, and every later call returns RM_ERR_DROPPED: only the exit
 * with RM_EXIT_DROPPED is left.
 *
 * A worker that was dropped (after a wrong suspicion, or while its sidecar was away) comes back by
 * this call, too. Its operations return RM_ERR_DROPPED until the call has returned, so that it
 * never sees a result that isn't the job's. What it was doing must begin again from the loaded
 * state. A process that can't do that exits with RM_EXIT_DROPPED: it is started again, and no
 * failure is counted. RM_ERR_DROPPED: the sidecar is back and has let nobody in for 30 seconds;
 * only that exit is left, too. If a worker was dropped after rm_shutdown, the next rm_init returns
 * RM_ERR_DROPPED, and the exit is the only way; rm_enter can't be called after rm_shutdown. */
#define RM_EXIT_DROPPED 79
RM_API rm_status rm_enter(double timeout_seconds);

/* Ends the use of the library by agreement of all ranks: returns when every rank of the view has
 * called it. Operations in flight fail with RM_ERR_SHUTDOWN, and all process sets are removed.
 * RM_ERR_TIMEOUT: some rank has not called it yet; another call goes on waiting. RM_ERR_DROPPED:
 * the others go on without this worker.
 *
 * Afterwards all ranks may call rm_init again, any number of times; it returns when every rank has
 * called it. If instead a process ends with status 0 the job is over, and rm_init returns
 * RM_ERR_SHUTDOWN everywhere. */
RM_API rm_status rm_shutdown(double timeout_seconds);

/* From now on exit(0), or returning 0 from main(), calls rm_shutdown. An exit with another status
 * calls nothing: the other workers go on without this one. */
RM_API rm_status rm_shutdown_at_exit(void);

/* This worker's place in its view. All of them return -1 before rm_init and after rm_shutdown. */
RM_API int rm_rank(void); /* 0 to rm_size() - 1 */
/* The rank that this worker had when the newest rm_shutdown ended; -1: none has. While rm_shutdown
 * waits for other ranks theirs and this one may change, because others may die or leave. */
RM_API int rm_last_rank(void);
RM_API int rm_size(void);
RM_API int rm_local_rank(void); /* among the workers of this pod, in rank order */
RM_API int rm_local_size(void); /* workers of this pod */
RM_API int rm_cross_rank(void); /* of this pod among the pods, which are in order of their ranks */
RM_API int rm_cross_size(void); /* pods */
/* The view's epoch, lineage << 40 | number; 0 before the first view. */
RM_API uint64_t rm_epoch(void);

/* ---- Collectives: named, asynchronous
 * --------------------------------------------------------------------------- */
/* Each operation has a name, the same on every rank. A name can be in flight once at a time on a
 * rank; a second request with it fails with RM_ERR_INVALID. The buffers belong to the library until
 * rm_wait or rm_poll says that the handle is done. The library reads `in` again if a reduction has
 * to be repeated after a fault, so it must not change meanwhile (in == out is allowed). An average
 * divides by the number of ranks that took part; integer averages are rounded down. When this
 * worker is dropped or leaves, its operations end with RM_ERR_DROPPED or RM_ERR_LEFT. */

/* One request to rm_submit, through which all collectives go; the rm_*_async functions below are
 * short forms. A field that `kind` doesn't use is ignored. New fields are only ever added at the
 * end, with 0 as their default, so that a caller that was compiled earlier works with a newer
 * library. */
typedef struct rm_request {
  size_t size; /* sizeof(rm_request) as the caller knows it; the same in all requests of a call */
  rm_kind kind;
  int process_set;  /* 0: all ranks; otherwise a number that rm_process_set_number() gave */
  const char* name; /* not used for a join */
  double prescale;  /* allreduce, reducescatter: factor of each input */
  double postscale; /* allreduce, reducescatter: factor of the result */
  const void* in;   /* what this rank gives; not used for broadcast and receive */
  void* out;        /* allreduce, receive: the result. broadcast: what the root sends and the other
                       ranks receive. Not used otherwise: see rm_result */
  /* The extents of the tensor: `dimensions` entries; 0 dimensions: one element. The first extent
     counts the rows of an allgather, alltoall, reducescatter or broadcast of bytes. For allgather,
     alltoall and broadcast of bytes it is this rank's and may differ between ranks. A reducescatter
     shares its rows out evenly; if they don't divide evenly, the first ranks get one more. */
  const size_t* shape;
  int dimensions;
  rm_dtype dtype;
  rm_op op;     /* allreduce, reducescatter */
  int priority; /* of operations that are ready together, those with lower numbers run first */
  /* alltoall: `splits_count` entries, the number of rows for each rank of the process set; their
     sum is this rank's rows. NULL: the same number for each rank. Splits belong to the workers that
     had these ranks when the step began (rm_step_worker_id); after a fault there may also be one
     for each rank that is left. Rows for a worker that has died are dropped. */
  const size_t* splits;
  size_t splits_count;
  /* broadcast, broadcast of bytes, receive: the sender's rm_worker_id(); send: the receiver's.
     A send and a receive of the same name between the same two workers belong together, and their
     shapes and types must agree. Their name is in flight once at a time in each direction between
     these two, not on the whole rank. They wait for each other and for no other rank. Either one
     ends with RM_ERR_ROOT_LOST if the other worker has died or left; after another fault the
     library repeats the transfer. */
  const char* root;
  /* 0: `in` and `out` lie in the host's memory. n > 0: they lie in the memory of CUDA's device
     n - 1, and so does a result that the library keeps. A worker uses one GPU; all ranks of an
     operation, and all requests of a group, must name the same kind of memory. Send and receive
     take the host's memory only. */
  int device;
  /* For tensors on a GPU: a cudaEvent_t that was recorded on the stream that writes the input and
     last uses `out`; it must stay valid until the operation is done. NULL: both are ready now. When
     the operation is done the result is in place, with no event to wait for. */
  const void* ready_event;
} rm_request;

/* A request for `kind` with the right size and no scaling; all else is 0. */
static inline rm_request rm_request_of(rm_kind kind, const char* name) {
  rm_request request;
  memset(&request, 0, sizeof(request));
  request.size = sizeof(request);
  request.kind = kind;
  request.name = name;
  request.prescale = request.postscale = 1.0;
  return request;
}

/* Process sets: a set is some of the workers, which then have collectives of their own.
 *
 * All ranks, members or not, call add and remove, and the operation is done when all have. They
 * must give add the same `n` ranks, in any order (RM_ERR_MISMATCH otherwise; RM_ERR_INVALID: no
 * ranks, one twice, or one that is not in the view). Operations that are in flight in a set that is
 * removed end with RM_ERR_INVALID.
 *
 * A set consists of the workers that had these ranks when the step began (rm_step_worker_id), not
 * of ranks. A worker that dies or
 * leaves is no longer in it, and its operations go on among the others. A worker that joins the job
 * later is in no set; it knows the sets of the others under the same numbers. A name is in flight
 * once at a time on a rank, whatever the set. An operation in a set of which this worker is no
 * member fails with RM_ERR_INVALID.
 *
 * A joiner that has not entered yet agrees on nothing with the others: its add calls only count the
 * sets that the others have added already, so that a script that adds its sets at its beginning has
 * the same numbers everywhere. */
RM_API rm_status rm_process_set_add_async(const int* ranks, size_t n, rm_handle* handle);
RM_API rm_status rm_process_set_remove_async(int process_set, rm_handle* handle);
/* *process_set: the number of the set that the add call of this handle has made. RM_ERR_INVALID:
 * the handle is unknown or not done yet; otherwise the addition's own error. */
RM_API rm_status rm_process_set_number(rm_handle handle, int* process_set);
/* The members of the set that are in the view now. *n: how many there are. `ranks`: room for
 * `capacity` ranks, of which at most *n are written, ascending. RM_ERR_INVALID: no such set. */
RM_API rm_status rm_process_set_ranks(int process_set, int* ranks, size_t capacity, size_t* n);

/* Asks for `n` operations: for all of them, or, on an error, for none. handles: room for `n`;
 * handles[i] belongs to requests[i], and all are 0 on an error. RM_ERR_INVALID: a field is wrong,
 * or a name is in flight already. A joiner that has not entered yet enters first, so the call may
 * block and return rm_enter's errors.
 *
 * More than one request are a group. A group is agreed on and executed as one: if one of its
 * operations can't run (say, its type differs between ranks), all of them fail, on every rank.
 * Ranks must give a group the same names in the same order. No barrier, join, send or receive can
 * be in a group. */
RM_API rm_status rm_submit(const rm_request* requests, size_t n, rm_handle* handles);

/* A prepared group: allreduces of the same tensors in every step, which are described once and then
 * cost as much as one operation, however many they are. It pays for many small tensors; a tensor of
 * 256 KiB or more is reduced where it lies if it is asked for by itself.
 *
 * rm_prepare describes the group: `n` requests for allreduces that have everything in common but
 * in, out and shape (RM_ERR_INVALID names the tensor and the field otherwise). Their names are not
 * used: `name` is that of the whole, in the names' one space with those of other operations. Adasum
 * can't be prepared, and ready_event must be NULL. The call asks no other rank, works before
 * rm_init, too, and copies what it needs but the tensors: the buffers stay the caller's, must stay
 * where they are until the group is freed and nothing of it is in flight, and belong to the library
 * only while it is in flight.
 *
 * rm_submit_group asks for all of them as one operation: it reads every `in` and, when the handle
 * is done, every `out` has its result, or none has and the error is that of all. in == out is
 * allowed. All ranks must have prepared the same shapes in the same order: RM_ERR_MISMATCH on every
 * rank otherwise, with the place of the first tensor that differs, counted from 0. A group can be
 * in flight once at a time (RM_ERR_INVALID), and be asked for in any number of steps: a fault, a
 * new view or rm_shutdown and rm_init change nothing of it. If its process set is removed, it fails
 * as every operation of that set. `ready_event`: for tensors on a GPU as in rm_request, for all of
 * them; otherwise NULL. RM_ERR_INVALID: there is no such group.
 *
 * rm_free_group forgets it; what is in flight of it goes on. */
typedef uint64_t rm_group; /* 0 is never a valid group */
RM_API rm_status rm_prepare(const char* name, const rm_request* requests, size_t n,
                            rm_group* group);
RM_API rm_status rm_submit_group(rm_group group, const void* ready_event, rm_handle* handle);
RM_API void rm_free_group(rm_group group);

/* in, out: `count` elements. */
RM_API rm_status rm_allreduce_async(const char* name, const void* in, void* out, size_t count,
                                    rm_dtype dtype, rm_op op, double prescale, double postscale,
                                    rm_handle* handle);

/* Each rank gives `rows` rows of `row_count` elements; `rows` may differ between ranks, row_count
 * and dtype must not. The result is the rows of all ranks in rank order; the library keeps it until
 * rm_release (rm_result). */
RM_API rm_status rm_allgather_async(const char* name, const void* in, size_t rows, size_t row_count,
                                    rm_dtype dtype, rm_handle* handle);
/* The result that the library keeps for an operation that is done. *data: the result, *rows rows.
 * *rows_by_rank: *ranks entries, by rank of the process set in the view in which the operation was
 * executed. Both pointers are valid until rm_release, and each argument may be NULL.
 *   allgather: the rows of all ranks, and how many each rank has given.
 *   reducescatter: this rank's rows, and how many each rank has got.
 *   alltoall: the rows that this rank has received, and how many from each rank.
 *   broadcast of bytes: the root's bytes, one in a row.
 * RM_ERR_INVALID: the handle is unknown or not done yet, or the operation's result is in its `out`;
 * otherwise the operation's own error. */
RM_API rm_status rm_result(rm_handle handle, const void** data, size_t* rows,
                           const size_t** rows_by_rank, size_t* ranks);
/* The same as rm_result. */
RM_API rm_status rm_allgather_result(rm_handle handle, const void** data, size_t* rows,
                                     const size_t** rows_by_rank, size_t* ranks);

/* Copies the root's `data` (`count` elements) to every rank's `data`. The root is the worker that
 * had the rank `root` when the step began (rm_step_worker_id). If it dies or leaves, every rank
 * gets RM_ERR_ROOT_LOST; no other worker takes its place. RM_ERR_INVALID: there is no such rank. */
RM_API rm_status rm_broadcast_async(const char* name, void* data, size_t count, rm_dtype dtype,
                                    int root, rm_handle* handle);

/* The name of the worker that has this rank now (-1: this worker); "" if there is none. Several
 * broadcasts that must come from the same worker name it by this, because a rank may move to
 * another worker. No other process ever gets the same name. Valid until the calling thread's next
 * call. */
RM_API const char* rm_worker_id(int rank);

/* What a rank means in this step's calls: the name of the worker that had it in the view in which
 * the step began; "" if there was none (-1: this worker). A fault within the step moves rm_rank(),
 * rm_size() and rm_worker_id(), but not this, so the ranks may make the same call before and after
 * the fault. It moves, on all ranks alike, when a step ends, when all have called rm_init again,
 * and when a broadcast among all ranks has ended with RM_ERR_ROOT_LOST: from then on ranks are
 * those of the view that is left. A script that ends no step is in its first step for ever.
 * rm_step_epoch: the number of the view that these ranks are of; 0 before rm_init. */
RM_API const char* rm_step_worker_id(int rank);
RM_API uint64_t rm_step_epoch(void);

/* Broadcasts bytes of which only the root knows how many there are: the root gives `data` of
 * `bytes` bytes, the others give none (`bytes` is 0; else the operation fails on every rank with
 * RM_ERR_INVALID). `root`: the root's rm_worker_id(). Every rank gets the bytes by rm_result. */
RM_API rm_status rm_broadcast_bytes_async(const char* name, const void* data, size_t bytes,
                                          const char* root, rm_handle* handle);

/* The same collectives for tensors whose shapes the ranks compare, and not only their numbers of
 * elements. The first extent of an allgather counts its rows and may differ between ranks. */
typedef struct rm_tensor {
  const size_t* shape;
  int dimensions; /* 0: one element */
  rm_dtype dtype;
} rm_tensor;
RM_API rm_status rm_allreduce_tensor_async(const char* name, const void* in, void* out,
                                           const rm_tensor* tensor, rm_op op, double prescale,
                                           double postscale, rm_handle* handle);
RM_API rm_status rm_allgather_tensor_async(const char* name, const void* in,
                                           const rm_tensor* tensor, rm_handle* handle);
RM_API rm_status rm_broadcast_tensor_async(const char* name, void* data, const rm_tensor* tensor,
                                           const char* root, rm_handle* handle);

/* Done when all ranks have asked for it. */
RM_API rm_status rm_barrier_async(const char* name, rm_handle* handle);

/* Says that this rank has no more data; the operation is done when all ranks have joined. Until
 * then this rank takes part in what the others ask for, with values that change nothing: zeros in a
 * sum or an average (which still divides by all ranks), the neutral element in a min, max or
 * product, and no rows elsewhere. It ends steps with the others. It can't be the root of a
 * broadcast, and can't send or receive. Planned changes of the membership wait until all ranks have
 * joined. */
RM_API rm_status rm_join_async(rm_handle* handle);
/* *last_rank: the last rank that joined, the same on all ranks. Call it before the next step ends:
 * what changed in steps that have ended while this rank had joined is then no news to that step's
 * rm_step_end(), as it is none to the ranks that have ended them. RM_ERR_INVALID: the handle is
 * unknown, not done yet or not a join's; otherwise the join's own error. */
RM_API rm_status rm_join_result(rm_handle handle, int* last_rank);

/* 1: the operation is done, perhaps with an error; 0: not yet; -1: the handle is unknown. */
RM_API int rm_poll(rm_handle handle);
/* Waits for the operation and returns its result. timeout_seconds <= 0: no deadline; the wait still
 * ends, because a lost view is rebuilt or the job ends. RM_ERR_TIMEOUT: the operation goes on.
 * RM_ERR_INVALID: the handle is unknown, or this is the operation's own error. The handle stays
 * valid until rm_release. */
RM_API rm_status rm_wait(rm_handle handle, double timeout_seconds);
/* Frees the handle and the result that the library keeps for it. */
RM_API void rm_release(rm_handle handle);
/* The same for `n` handles in one call, such as those of a group. rm_wait_all returns when all are
 * done, or with RM_ERR_TIMEOUT when one isn't at the deadline; then the first error, in the order
 * of `handles`. */
RM_API rm_status rm_wait_all(const rm_handle* handles, size_t n, double timeout_seconds);
RM_API void rm_release_all(const rm_handle* handles, size_t n);

/* ---- Steps, state, membership
 * ----------------------------------------------------------------------------------- */

typedef struct rm_step_info {
  uint64_t epoch;         /* of the view whose ranks the next step's calls mean (rm_step_epoch) */
  uint64_t step;          /* steps that are complete, with this one; the same on all ranks */
  int old_size, new_size; /* size of the view at the previous rm_step_end and now; they differ after
                             a fault within the step, too */
  int view_changed;       /* 1: the view is another one than at the previous rm_step_end */
  int state_synced;       /* 1: state was given to joiners at this boundary */
} rm_step_info;

/* Ends a step. All ranks call it, with no operation in flight; it returns when all members of the
 * view have confirmed the step, which counts only from then on. Planned joins and leaves happen
 * here: the call then blocks until the next view is installed and the joiners have their state.
 * `info` may be NULL. RM_ERR_LEFT: this worker has been drained; exit with status 0.
 * RM_ERR_INVALID: another thread is in rm_step_end. */
RM_API rm_status rm_step_end(rm_step_info* info);

/* Registers state that joiners get at a step boundary from the lowest surviving rank: a buffer of
 * the same name and size on every worker. It must stay valid until rm_state_unregister; the library
 * reads or writes it only within rm_step_end and rm_enter. RM_ERR_INVALID: no name, or no data for
 * bytes > 0; for unregister: no such name. Both work before rm_init, too. */
RM_API rm_status rm_state_register(const char* name, void* data, size_t bytes);
RM_API rm_status rm_state_unregister(const char* name);
/* One pair of callbacks for all other state. They are called on the thread that is in rm_step_end
 * or rm_enter (or that enters with a first collective). `user` is passed on to them.
 *   save: points *data at *bytes bytes, which stay valid until the next save or until the call in
 *     which it runs has returned. Returns 0 for success.
 *   load: returns 0 for success; anything else fails rm_enter with RM_ERR_INTERNAL.
 *   A C++ exception that leaves one of them counts as such a failure (std::bad_alloc as
 *   RM_ERR_OUT_OF_MEMORY).
 * RM_ERR_INVALID: only one of the two is given. */
typedef int (*rm_state_save_fn)(void* user, const void** data, size_t* bytes);
typedef int (*rm_state_load_fn)(void* user, const void* data, size_t bytes);
RM_API rm_status rm_state_callbacks(rm_state_save_fn save, rm_state_load_fn load, void* user);

/* Reports progress for people and metrics. The newest value of each name goes to the sidecar with
 * the next heartbeat, so the call sends nothing itself. "samples" is the number of samples that
 * this rank has worked off so far; from it samples per second are computed. Of a worker the first
 * 64 names count. RM_ERR_INVALID: no name, one of more than 64 bytes, or the value is not finite.
 */
RM_API rm_status rm_report(const char* name, double value);

/* Start: records what this worker does and when, as Chrome's trace events, until rm_timeline_stop
 * or rm_shutdown: how long each tensor waited for other ranks (NEGOTIATE_ALLREDUCE ...) and ran
 * (ALLREDUCE ...), steps, rebuilds of the view. Each rank records for itself. Rank 0 writes to
 * `path`, rank k to a file beside it ("t.rank2.json" for "t.json"); after the job's first view a
 * file that exists is not overwritten, and another name is taken. The variable HOROVOD_TIMELINE
 * does the same from the beginning. RM_ERR_INVALID: a timeline is being recorded already, the file
 * can't be made, or not within 10 s, or this worker is in no view yet. Stop: RM_ERR_INTERNAL: not
 * everything could be written, or the file took nothing for 30 s (a file system that hangs) and was
 * given up. */
RM_API rm_status rm_timeline_start(const char* path);
RM_API rm_status rm_timeline_stop(void);

/* This worker's part of the last rebuild as JSON, with times in seconds:
 * {"epoch":..,"reason":..,"seconds":{"stop":..,"connect":..,"redo":..,"resume":..}}. "" if there
 * was none. Valid until the calling thread's next call. */
RM_API const char* rm_last_rebuild(void);

#ifdef __cplusplus
}
#endif
#endif /* RINGMASTER_RINGMASTER_H_ */
