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
 * RINGMASTER_SOCKET the process is a world of one. Again is a no-op. A bootstrapping worker blocks
 * until the first view is installed. A joiner (restarted, or of a new pod) returns at once with
 * rm_is_joining() == 1 and enters with rm_enter(), or with its first collective. A standby blocks
 * until it takes a dead worker's place, and then is a joiner. timeout_seconds <= 0: 600. */
RM_API rm_status rm_init(double timeout_seconds);
RM_API int rm_initialized(void);

/* 1 while this worker is registered but in no view yet. rank and size are then what they will
 * probably be. */
RM_API int rm_is_joining(void);

/* A joiner blocks until a view at a step boundary has it and its registered state has been loaded.
 * No-op for others. */
RM_API rm_status rm_enter(double timeout_seconds);

/* Agreed by all ranks: returns when every rank of the view has called it (or the deadline has
 * passed). */
RM_API rm_status rm_shutdown(double timeout_seconds);

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

RM_API rm_status rm_allreduce_async(const char* name, const void* in, void* out, size_t count,
                                    rm_dtype dtype, rm_op op, double prescale, double postscale,
                                    rm_handle* handle);

/* Ragged: each rank gives `rows` rows of `row_count` elements; row_count and dtype must agree. The
 * result, the rows of all ranks in rank order, is kept by the library until rm_release:
 * rm_allgather_result. */
RM_API rm_status rm_allgather_async(const char* name, const void* in, size_t rows, size_t row_count,
                                    rm_dtype dtype, rm_handle* handle);
/* After rm_wait: data (owned by the library), total rows, and rows by rank (`ranks` entries). */
RM_API rm_status rm_allgather_result(rm_handle handle, const void** data, size_t* rows,
                                     const size_t** rows_by_rank, size_t* ranks);

/* In place: the root's `data` is copied to every rank's. */
RM_API rm_status rm_broadcast_async(const char* name, void* data, size_t count, rm_dtype dtype,
                                    int root, rm_handle* handle);

RM_API rm_status rm_barrier_async(const char* name, rm_handle* handle);

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

/* Times of the last rebuild as JSON
 * ({"epoch":..,"reason":..,"seconds":{"detect":..,"decide":..,"stop":..,"connect":..,
 * "redo":..,"resume":..}}), "" if none. Valid until the calling thread's next call. */
RM_API const char* rm_last_rebuild(void);

#ifdef __cplusplus
}
#endif
#endif /* RINGMASTER_RINGMASTER_H_ */
