/* The C ABI of the Ringmaster collectives library.
 *
 * Two layers (see docs/architecture.md): this header is the *engine*: named tensors in any order
 * from any thread, fused, negotiated, recovered in place when a worker dies. The *communicator*
 * below it, which runs collectives on the caller's thread in the order they are called and never
 * recovers by itself, is ringmaster/communicator.h.
 *
 * Every function is safe to call from any thread unless it says otherwise. Functions that can fail
 * return rm_status; rm_last_error() then gives the calling thread a sentence for people. No
 * function calls abort(), and every wait ends: with the result, or with an error when the deadline
 * passed.
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

/* Connects to the sidecar (RINGMASTER_SOCKET, RINGMASTER_SLOT, ... : docs/contracts.md). Without
 * RINGMASTER_SOCKET its world is what an MPI launcher has started (mpirun, mpiexec, srun:
 * docs/horovod.md), which blocks until all of it is here, or itself alone. Again is a no-op. A
 * bootstrapping worker blocks until the first view is installed; if the job begins without it, it
 * is a joiner. A joiner (restarted, or of a new pod) returns at once with rm_is_joining() == 1 and
 * enters with rm_enter(), or with its first collective. A standby blocks until it takes a dead
 * worker's place, and then is a joiner. timeout_seconds <= 0: 600. */
RM_API rm_status rm_init(double timeout_seconds);
RM_API int rm_initialized(void);

/* The version of NCCL that this process can use, 22703 for 2.27.3. 0: tensors on GPUs can't be
 * given to the library, or go through the host's memory; rm_last_error says why (no GPU, no
 * libcudart, no libnccl). Also before rm_init. */
RM_API int rm_nccl_version(void);

/* 1 while this worker is registered but in no view yet. rank and size are then what they will
 * probably be. */
RM_API int rm_is_joining(void);

/* A joiner blocks until a view at a step boundary has it and its registered state has been loaded.
 * No-op for others.
 *
 * Also the way back for a worker that was dropped (a wrong suspicion, a sidecar that was away): its
 * operations answer RM_ERR_DROPPED until this call has returned, so no result that isn't the job's
 * ever reaches it, and what it was in the middle of is to be begun again with the loaded state. A
 * process that can't do that exits with RM_EXIT_DROPPED: it is started again, and no failure is
 * counted. For a worker that was dropped between rm_shutdown and the next rm_init that is the only
 * way: its rm_init answers RM_ERR_DROPPED, and this call is not for one that has shut down. */
#define RM_EXIT_DROPPED 79
RM_API rm_status rm_enter(double timeout_seconds);

/* Agreed by all ranks: returns when every rank of the view has called it. RM_ERR_TIMEOUT: not yet,
 * and a later call goes on waiting. Process sets are gone, and what is under way fails. rm_init
 * begins again, as often as one likes; it is agreed as well, and returns when every rank has called
 * it. A process that ends instead, with status 0, ends the job: from then on nobody begins again
 * (RM_ERR_SHUTDOWN). */
RM_API rm_status rm_shutdown(double timeout_seconds);

/* From now on exit(0), or returning 0 from main(), calls rm_shutdown on its way. Exit with another
 * status is no agreed end of the job: the others go on without this worker. */
RM_API rm_status rm_shutdown_at_exit(void);

RM_API int rm_rank(void); /* -1 before rm_init */
RM_API int rm_size(void);
RM_API int rm_local_rank(void); /* among the workers of this pod */
RM_API int rm_local_size(void);
RM_API int rm_cross_rank(void); /* index of this pod in rank order */
RM_API int rm_cross_size(void);
RM_API uint64_t rm_epoch(void); /* L << 40 | n; 0 before the first view */

/* ---- Collectives: named, asynchronous
 * --------------------------------------------------------------------------- */
/* `name` is the same on every rank and in flight once at a time (a second one is RM_ERR_INVALID).
 * Buffers belong to the library until rm_wait or rm_poll says the handle is done; `in` is read
 * again if a reduction has to be repeated, so it must not change meanwhile (in == out is fine).
 * Averages divide by the ranks that took part; integers floor. */

/* Everything that can be asked for goes through one call; the rm_*_async functions below are short
 * forms of it. A field that `kind` doesn't use is ignored. Fields are only ever added, at the end
 * and with 0 as their default, so a caller that was compiled earlier works with a newer library. */
typedef struct rm_request {
  size_t size; /* sizeof(rm_request) of the caller; of all requests of a call the same */
  rm_kind kind;
  int process_set; /* 0: all ranks; else what rm_process_set_number() gave */
  const char* name;
  double prescale;  /* allreduce, reducescatter: inputs are multiplied by it, */
  double postscale; /* and the result by this */
  const void* in;   /* broadcast: not used */
  void* out;        /* allreduce, receive; broadcast: what the root sends and the others receive */
  const size_t* shape;
  int dimensions; /* 0: one element. Rows are the first extent: of allgather and alltoall they may
                     differ; of a reducescatter the first ranks get one more if need be */
  rm_dtype dtype;
  rm_op op;
  int priority;         /* of what is ready together, lower numbers run first */
  const size_t* splits; /* alltoall: rows for each rank; NULL: the same for all. They belong to the
                           workers that have these ranks now: who dies gets none */
  size_t splits_count;
  /* broadcast, receive: the sender's rm_worker_id(); send: the receiver's. A send and a receive of
     one name between the same two workers belong together, and their shapes and types must agree.
     Between the two, not for the whole rank, a name is in flight once at a time in each direction.
     They wait for each other, not for other ranks; each ends with RM_ERR_ROOT_LOST when the other
     worker has died or left, and is otherwise repeated by itself after a fault. */
  const char* root;
  /* 0: `in` and `out` lie in the host's memory. n: in that of CUDA's device n - 1, and so does a
     result that the library keeps. A worker uses one GPU; all ranks of an operation, and all
     requests of a group, name the same kind of memory. */
  int device;
  /* Of tensors on a GPU: a cudaEvent_t, recorded on the stream that makes the input and uses `out`
     before; it is valid until the operation is done. NULL: the input is there. When the operation
     is done the result is in place: no event has to be waited for. */
  const void* ready_event;
} rm_request;

static inline rm_request rm_request_of(rm_kind kind, const char* name) {
  rm_request request;
  memset(&request, 0, sizeof(request));
  request.size = sizeof(request);
  request.kind = kind;
  request.name = name;
  request.prescale = request.postscale = 1.0;
  return request;
}

/* Process sets: some of the workers, which then have collectives of their own. Adding one is agreed
 * by all ranks, which must give the same ranks in any order; so is removing one, which ends what is
 * in flight in it with RM_ERR_INVALID. A set is made of the workers that have these ranks now, and
 * not of ranks: who dies or leaves is in it no more, its operations go on among the others, and
 * whoever joins the job is in no set (it knows the sets of the others, under the same numbers). A
 * name is in flight once at a time on a rank, whatever the set. An operation in a set of which this
 * worker is no member fails with RM_ERR_INVALID.
 *
 * A joiner's calls before it has entered agree with nobody: they count the sets that the others
 * have added, so that a script that adds its sets when it begins has the same numbers everywhere.
 */
RM_API rm_status rm_process_set_add_async(const int* ranks, size_t n, rm_handle* handle);
RM_API rm_status rm_process_set_remove_async(int process_set, rm_handle* handle);
/* Of an addition that is done. */
RM_API rm_status rm_process_set_number(rm_handle handle, int* process_set);
/* Its members that are in the world now. *n: how many there are; up to `capacity` of their ranks
 * are written to `ranks`, ascending. */
RM_API rm_status rm_process_set_ranks(int process_set, int* ranks, size_t capacity, size_t* n);

/* Asks for `n` operations: all of them, or, on an error, none. More than one are a group: it is
 * agreed on and executed as one, and if one of them can't run (say, its type differs between ranks)
 * all fail, on every rank. Ranks must give a group the same names in the same order;
 * no barrier, join, send or receive can be in one. handles[i] is that of requests[i]. */
RM_API rm_status rm_submit(const rm_request* requests, size_t n, rm_handle* handles);

RM_API rm_status rm_allreduce_async(const char* name, const void* in, void* out, size_t count,
                                    rm_dtype dtype, rm_op op, double prescale, double postscale,
                                    rm_handle* handle);

/* Ragged: each rank gives `rows` rows of `row_count` elements; row_count and dtype must agree. The
 * result, the rows of all ranks in rank order, is kept by the library until rm_release:
 * rm_result. */
RM_API rm_status rm_allgather_async(const char* name, const void* in, size_t rows, size_t row_count,
                                    rm_dtype dtype, rm_handle* handle);
/* After rm_wait: data (owned by the library), its rows, and rows by rank (`ranks` entries). Of an
 * allgather: all ranks' rows. Of a reducescatter: this rank's, and how many each rank has got. Of
 * an alltoall: what this rank has received, and how much from each. A rank is one of the view in
 * which the operation was executed. */
RM_API rm_status rm_result(rm_handle handle, const void** data, size_t* rows,
                           const size_t** rows_by_rank, size_t* ranks);
RM_API rm_status rm_allgather_result(rm_handle handle, const void** data, size_t* rows,
                                     const size_t** rows_by_rank, size_t* ranks);

/* In place: the root's `data` is copied to every rank's. The root is the worker that has the rank
 * `root` now: if it dies or leaves, every rank gets RM_ERR_ROOT_LOST; nobody takes its place. */
RM_API rm_status rm_broadcast_async(const char* name, void* data, size_t count, rm_dtype dtype,
                                    int root, rm_handle* handle);

/* Which worker has this rank now (-1: this one itself), for several broadcasts that must come from
 * one and the same; "" if there is none. Never the name of another process later. Valid until the
 * calling thread's next call. */
RM_API const char* rm_worker_id(int rank);

/* Bytes of a length that only the root knows: it gives `data`, the others give none (bytes is 0).
 * `root` is its rm_worker_id(). The result is that of an allgather: rm_allgather_result. */
RM_API rm_status rm_broadcast_bytes_async(const char* name, const void* data, size_t bytes,
                                          const char* root, rm_handle* handle);

/* The same collectives for tensors whose shapes are compared between ranks, not only their numbers
 * of elements. An allgather's rows are the first extent, which may differ. */
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

RM_API rm_status rm_barrier_async(const char* name, rm_handle* handle);

/* This rank has no more data. Until all ranks have joined it takes part in what the others ask for
 * with nothing: zeros in a sum or average (which still divides by all ranks), what changes nothing
 * in a min, max or product, no rows elsewhere; it ends steps with them. It can be no broadcast's
 * root. Planned changes of the membership wait until all have joined. */
RM_API rm_status rm_join_async(rm_handle* handle);
/* After rm_wait: the last rank that joined, the same on all ranks. */
RM_API rm_status rm_join_result(rm_handle handle, int* last_rank);

RM_API int rm_poll(
    rm_handle handle); /* 1: done (also with an error), 0: not yet, -1: unknown handle */
/* The operation's own result. timeout_seconds <= 0: no deadline but the job's (a lost view is
 * rebuilt, never waited for for ever). The handle stays valid until rm_release. */
RM_API rm_status rm_wait(rm_handle handle, double timeout_seconds);
RM_API void rm_release(rm_handle handle);

/* ---- Steps, state, membership
 * ----------------------------------------------------------------------------------- */

typedef struct rm_step_info {
  uint64_t epoch;         /* of the view the next step runs in */
  uint64_t step;          /* completed steps, this one included; the same on all ranks */
  int old_size, new_size; /* world size at the previous rm_step_end and now; differ also after a
                             fault within the step */
  int view_changed;       /* 1: the view is another one than at the previous rm_step_end */
  int state_synced;       /* 1: state was given to joiners at this boundary */
} rm_step_info;

/* Ends a step: a confirmation over all members of the view (it counts only after this). Planned
 * joins and leaves happen here: the call then blocks until the next view is installed and joiners
 * have their state. RM_ERR_LEFT: this worker has been drained: exit 0. Collective; call with no
 * operation in flight. `info` may be NULL. */
RM_API rm_status rm_step_end(rm_step_info* info);

/* State given to joiners at the boundary, from the lowest surviving rank. Plain buffers of the same
 * size everywhere: */
RM_API rm_status rm_state_register(const char* name, void* data, size_t bytes);
RM_API rm_status rm_state_unregister(const char* name);
/* ... and one pair of callbacks for everything else. Called on the thread that calls rm_step_end /
 * rm_enter. save: point *data at `*bytes` bytes that stay valid until the next save or until `load`
 * returns; 0: success. load: 0: success; anything else fails rm_enter with RM_ERR_INTERNAL. */
typedef int (*rm_state_save_fn)(void* user, const void** data, size_t* bytes);
typedef int (*rm_state_load_fn)(void* user, const void* data, size_t bytes);
RM_API rm_status rm_state_callbacks(rm_state_save_fn save, rm_state_load_fn load, void* user);

/* Progress for people and metrics: the last value by name goes to the sidecar with the next
 * heartbeat (no traffic of its own). "samples" is a counter of samples done by this rank, from
 * which samples/s are computed. */
RM_API rm_status rm_report(const char* name, double value);

/* Records what this worker does and when, as Chrome's trace events, until rm_timeline_stop or
 * rm_shutdown: how long each tensor waited for other ranks (NEGOTIATE_ALLREDUCE ...) and ran
 * (ALLREDUCE ...), steps, rebuilds of the view. Rank 0 writes to `path`, rank k beside it
 * ("t.rank2.json" for "t.json"; after the job's first view no
 * file is written over). The variable
 * HOROVOD_TIMELINE does the same from the beginning. RM_ERR_INVALID: one is being recorded, or
 * there can be no such file; stop: RM_ERR_INTERNAL: not all could be written. Local to the rank. */
RM_API rm_status rm_timeline_start(const char* path);
RM_API rm_status rm_timeline_stop(void);

/* Times of the last rebuild as JSON
 * ({"epoch":..,"reason":..,"seconds":{"detect":..,"decide":..,"stop":..,"connect":..,
 * "redo":..,"resume":..}}), "" if none. Valid until the calling thread's next call. */
RM_API const char* rm_last_rebuild(void);

#ifdef __cplusplus
}
#endif
#endif /* RINGMASTER_RINGMASTER_H_ */
