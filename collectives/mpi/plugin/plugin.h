/* What the library asks of a plug-in that calls MPI.
 *
 * MPI has no common binary interface: Open MPI and MPICH differ in handles and constants. So the
 * library itself calls no MPI. It loads a plug-in, which is compiled against one MPI, and this is
 * all that the two know of each other. plugin.cc needs nothing else of the project:
 *
 *   cd SOURCES && mpicxx -std=c++20 -O2 -fno-exceptions -shared -fPIC -I . -I collectives/include \
 *     collectives/mpi/plugin/plugin.cc -o libringmaster_mpi.so
 *
 * Functions that return an int answer a code of MPI, 0 for success. Those with a request only begin
 * something; buffers must stay until test() says that it is done. Counts and displacements are
 * copied. Memory of a request that is never done is never freed.
 *
 * Thread rule: one thread at a time, unless begin() has said that MPI allows several.
 */
#ifndef RINGMASTER_MPI_PLUGIN_H_
#define RINGMASTER_MPI_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#include "ringmaster/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RM_MPI_PLUGIN_VERSION 1

typedef struct rm_mpi_comm rm_mpi_comm;
typedef struct rm_mpi_request rm_mpi_request;

/* inout[i] = in[i] op inout[i]: a reduction that MPI does not have, or has with another result. */
typedef void (*rm_mpi_kernel)(const void* in, void* inout, size_t count, rm_dtype dtype, rm_op op);

/* What MPI allows threads to do (MPI_THREAD_SINGLE and so on). */
typedef enum rm_mpi_threads {
  RM_MPI_ONE_THREAD = 0,      /* only the thread that has initialised MPI calls it */
  RM_MPI_SERIAL_THREADS = 1,  /* any thread, one at a time */
  RM_MPI_PARALLEL_THREADS = 2 /* any thread at any time */
} rm_mpi_threads;

typedef struct rm_mpi_plugin {
  uint32_t version; /* RM_MPI_PLUGIN_VERSION */

  /* The MPI that the plug-in was compiled for: "Open MPI", "MPICH". */
  const char* compiled_for;
  /* What the MPI that is loaded says of itself. Allowed before begin(). */
  const char* (*loaded)(void);

  /* Initialises MPI, unless somebody has. *started: this call has done it, or an earlier one.
     `kernel` makes the reductions that MPI lacks. */
  int (*begin)(rm_mpi_kernel kernel, int* started, rm_mpi_threads* threads);
  /* Whether MPI has been finalised, by whomever. */
  int (*finished)(void);
  int (*finish)(void);
  int (*place)(int* rank, int* size); /* in MPI_COMM_WORLD */
  /* What a code means. */
  void (*explain)(int code, char* out, size_t size);

  /* A duplicate of MPI_COMM_WORLD. *comm can be used when the request is done. */
  int (*dup_world)(rm_mpi_comm** comm, rm_mpi_request** request);
  /* A communicator of these ranks of `comm`; only they call it. Waits for them. */
  int (*group)(rm_mpi_comm* comm, const int* ranks, int count, int tag, rm_mpi_comm** out);
  void (*free_comm)(rm_mpi_comm* comm);

  int (*allreduce)(rm_mpi_comm* comm, const void* in, void* out, int count, rm_dtype dtype,
                   rm_op op, rm_mpi_request** request); /* in == out is fine */
  int (*reduce_scatter)(rm_mpi_comm* comm, const void* in, void* out, const int* counts, int ranks,
                        rm_dtype dtype, rm_op op, rm_mpi_request** request);
  /* Of bytes. bytes, at: of each rank, the block's size and where it begins in `recv`. */
  int (*allgatherv)(rm_mpi_comm* comm, const void* send, int send_bytes, void* recv,
                    const int* bytes, const int* at, int ranks, rm_mpi_request** request);
  int (*broadcast)(rm_mpi_comm* comm, void* data, int bytes, int root, rm_mpi_request** request);
  int (*alltoallv)(rm_mpi_comm* comm, const void* send, const int* send_bytes, const int* send_at,
                   void* recv, const int* recv_bytes, const int* recv_at, int ranks,
                   rm_mpi_request** request);
  int (*barrier)(rm_mpi_comm* comm, rm_mpi_request** request);

  /* Lets MPI make progress. If *done, the request is gone. */
  int (*test)(rm_mpi_request* request, int* done);
} rm_mpi_plugin;

/* The one symbol of a plug-in. */
typedef const rm_mpi_plugin* (*rm_mpi_plugin_function)(void);
RM_API const rm_mpi_plugin* rm_mpi_plugin_get(void);

#ifdef __cplusplus
}
#endif
#endif /* RINGMASTER_MPI_PLUGIN_H_ */
