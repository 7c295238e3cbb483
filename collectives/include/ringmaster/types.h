/* What an answer and an element are called: the vocabulary that every layer of the library shares,
 * from the transport up to the C ABI. C, so that ringmaster.h can include it.
 */
#ifndef RINGMASTER_TYPES_H_
#define RINGMASTER_TYPES_H_

#ifdef __cplusplus
extern "C" {
#endif

#define RM_API __attribute__((visibility("default")))

typedef enum rm_status {
  RM_OK = 0,
  RM_ERR_INVALID = 1, /* wrong argument; nothing was enqueued. Fix the call. */
  RM_ERR_MISMATCH =
      2, /* shape, type, op or root differ between ranks; every rank gets this; the job goes on */
  RM_ERR_EPOCH_MOVED = 3, /* communicators only: the view is dead, wait for the next one */
  RM_ERR_LEFT =
      4, /* this worker has left the job by plan (drain, scale-down): clean up and exit 0 */
  RM_ERR_TIMEOUT = 5,     /* the deadline passed; for rm_wait the operation goes on */
  RM_ERR_UNAVAILABLE = 6, /* no sidecar, no port: the message names the cause */
  RM_ERR_SHUTDOWN = 7,    /* not initialised, or already shut down */
  RM_ERR_NO_STATE = 8,    /* a worker joined and no state is registered to give it */
  RM_ERR_INTERNAL = 9,    /* a defect of the library, or a sidecar that gave up: the message says */
  /* the root of a broadcast, or the other one of a send or a receive, has died or left; every rank
     that takes part gets this; the job goes on */
  RM_ERR_ROOT_LOST = 10,
  /* the others go on without this worker, so what it holds counts for nothing: rm_enter, which
     waits until it is let in again and loads their state, or exit with RM_EXIT_DROPPED. Where
     rm_init after rm_shutdown answers it only the exit is left */
  RM_ERR_DROPPED = 11,
  RM_ERR_OUT_OF_MEMORY = 12,
  RM_ERR_FORKED = 13 /* called in a process that was forked from a worker */
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
  RM_BOOL = 8, /* a byte, 0 or 1; sum and max: any, product and min: all; no average */
  RM_UINT16 = 9,
  RM_INT16 = 10,
  RM_UINT32 = 11,
  RM_UINT64 = 12,
  /* no type: makes every int that a caller may pass a value that can be refused */
  RM_DTYPE_ANY_INT_ = -0x7fffffff - 1
} rm_dtype;

/* What is asked for by rm_submit (ringmaster.h). */
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
  RM_KIND_ANY_INT_ = -0x7fffffff - 1 /* no kind, as above */
} rm_kind;

typedef enum rm_op {
  RM_SUM = 0,
  RM_AVERAGE = 1,
  RM_MIN = 2,
  RM_MAX = 3,
  RM_PRODUCT = 4,
  /* allreduce of floating point only: what gradients have in common counts once. Each tensor by
   * itself, any number of ranks, computed in double precision. */
  RM_ADASUM = 5,
  RM_OP_ANY_INT_ = -0x7fffffff - 1 /* no operation, as above */
} rm_op;

#ifdef __cplusplus
}
#endif
#endif /* RINGMASTER_TYPES_H_ */
