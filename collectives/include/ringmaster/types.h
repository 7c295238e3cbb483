/* The status codes, element types, collectives and reductions that every layer of the library
 * shares, from the transport up to the C ABI. It is C, so that ringmaster.h can include it.
 */
#ifndef RINGMASTER_TYPES_H_
#define RINGMASTER_TYPES_H_

#ifdef __cplusplus
extern "C" {
#endif

#define RM_API __attribute__((visibility("default")))

typedef enum rm_status {
  RM_OK = 0,
  /* An argument is wrong: fix the call. If the call itself answers this, nothing was enqueued; an
     operation ends with it on every rank if one rank's request can't be executed. */
  RM_ERR_INVALID = 1,
  /* Shape, type, reduction, root or group differ between ranks. Every rank gets this answer, and
     the job goes on. */
  RM_ERR_MISMATCH = 2,
  /* From communicators only: the view is dead. Wait for the next one. */
  RM_ERR_EPOCH_MOVED = 3,
  /* This worker has left the job by plan (drain, scale-down): clean up and exit with status 0. */
  RM_ERR_LEFT = 4,
  /* The deadline has passed. The operation that rm_wait waited for goes on. */
  RM_ERR_TIMEOUT = 5,
  /* Something outside the library is missing: a sidecar, a port, a GPU. The message names it. */
  RM_ERR_UNAVAILABLE = 6,
  /* The library is not initialised, or all ranks have shut down. */
  RM_ERR_SHUTDOWN = 7,
  /* A worker has joined, and there is no registered state that it could be given or could load. */
  RM_ERR_NO_STATE = 8,
  /* A defect of the library, or a sidecar that gave up: the message says which. */
  RM_ERR_INTERNAL = 9,
  /* The root of a broadcast, or the peer of a send or receive, has died or left. Every rank that
     takes part gets this answer, and the job goes on. */
  RM_ERR_ROOT_LOST = 10,
  /* The other workers go on without this one, so what it holds counts for nothing. Call rm_enter,
     which waits until this worker is let in again and loads the job's state, or exit with
     RM_EXIT_DROPPED. If rm_init answers this after rm_shutdown, only the exit is left. */
  RM_ERR_DROPPED = 11,
  /* The library can't get the memory that it needs. */
  RM_ERR_OUT_OF_MEMORY = 12,
  /* The call was made in a process that was forked from a worker. */
  RM_ERR_FORKED = 13
} rm_status;

typedef enum rm_dtype {
  RM_UINT8 = 0,
  RM_INT8 = 1,
  RM_INT32 = 2,
  RM_INT64 = 3,
  RM_FLOAT16 = 4,
  RM_BFLOAT16 = 5,
  RM_FLOAT32 = 6,
  RM_FLOAT64 = 7,
  /* One byte, 0 or 1. Sum and max are "any", product and min are "all"; there is no average. */
  RM_BOOL = 8,
  RM_UINT16 = 9,
  RM_INT16 = 10,
  RM_UINT32 = 11,
  RM_UINT64 = 12,
  /* Not a type. With it every int is a value of this enum, so the library may look at whatever a
     caller passes, and refuse it. */
  RM_DTYPE_ANY_INT_ = -0x7fffffff - 1
} rm_dtype;

/* What a request asks for (rm_submit in ringmaster.h). */
typedef enum rm_kind {
  RM_ALLREDUCE = 1,
  RM_ALLGATHER = 2,
  RM_BROADCAST = 3,
  RM_BROADCAST_BYTES = 4,
  RM_BARRIER = 5,
  RM_REDUCESCATTER = 6,
  RM_ALLTOALL = 7,
  RM_JOIN = 8,
  RM_SEND = 9,                       /* to one worker, which asks for RM_RECEIVE */
  RM_RECEIVE = 10,                   /* from one worker, which asks for RM_SEND */
  RM_KIND_ANY_INT_ = -0x7fffffff - 1 /* not a kind; see RM_DTYPE_ANY_INT_ */
} rm_kind;

typedef enum rm_op {
  RM_SUM = 0,
  RM_AVERAGE = 1,
  RM_MIN = 2,
  RM_MAX = 3,
  RM_PRODUCT = 4,
  /* For allreduce of floating point only: adds gradients so that what two of them have in common
     counts once. Each tensor is reduced by itself, in double precision, by any number of ranks. */
  RM_ADASUM = 5,
  RM_OP_ANY_INT_ = -0x7fffffff - 1 /* not a reduction; see RM_DTYPE_ANY_INT_ */
} rm_op;

#ifdef __cplusplus
}
#endif
#endif /* RINGMASTER_TYPES_H_ */
