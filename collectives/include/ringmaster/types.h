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
  RM_ERR_UNAVAILABLE = 6, /* no sidecar, no memory, no port: the message names the cause */
  RM_ERR_SHUTDOWN = 7,    /* not initialised, or already shut down */
  RM_ERR_NO_STATE = 8,    /* a worker joined and no state is registered to give it */
  RM_ERR_INTERNAL = 9     /* a defect of the library, or a sidecar that gave up: the message says */
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
  RM_DTYPE_ANY_INT_ =
      0x7fffffff /* no type: makes every int that a caller may pass a value that can be refused */
} rm_dtype;

typedef enum rm_op {
  RM_SUM = 0,
  RM_AVERAGE = 1,
  RM_MIN = 2,
  RM_MAX = 3,
  RM_PRODUCT = 4,
  RM_OP_ANY_INT_ = 0x7fffffff /* no operation, as above */
} rm_op;

#ifdef __cplusplus
}
#endif
#endif /* RINGMASTER_TYPES_H_ */
