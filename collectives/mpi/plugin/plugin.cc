// The plug-in: calls the MPI that it is compiled against. Nothing else of the project includes
// mpi.h, and this includes nothing of the project but plugin.h and types.h.
//
// It needs nothing of C++'s library at run time: memory is malloc's, and there are no exceptions.

#include "collectives/mpi/plugin/plugin.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

// MPI's handles are of different types in each implementation, so they travel in these.
struct rm_mpi_comm {
  MPI_Comm comm;
};
struct rm_mpi_request {
  MPI_Request request;
  // The communicator that is being made; null: none.
  rm_mpi_comm* made;
  // MPI reads them until the request is done.
  int numbers[];
};

namespace {

constexpr int kTypes = RM_UINT64 + 1, kOps = RM_PRODUCT + 1;

// A request has at most so many lists of numbers, one number for each rank.
constexpr int kMostLists = 4;

rm_mpi_kernel reduce_kernel = nullptr;

// A function that MPI calls has no context, so there is one for each type and reduction.
template <int dtype, int op>
void Reduce(void* in, void* inout, int* count, MPI_Datatype*) {
  reduce_kernel(in, inout, static_cast<size_t>(*count), static_cast<rm_dtype>(dtype),
                static_cast<rm_op>(op));
}

template <int... index>
constexpr std::array<MPI_User_function*, sizeof...(index)> Functions(
    std::integer_sequence<int, index...>) {
  return {Reduce<index / kOps, index % kOps>...};
}
constexpr auto kFunctions = Functions(std::make_integer_sequence<int, kTypes * kOps>());

MPI_Op own_ops[kTypes * kOps];

bool IsFloat(rm_dtype dtype) { return dtype == RM_FLOAT32 || dtype == RM_FLOAT64; }

bool IsSmallInteger(rm_dtype dtype) {
  return dtype == RM_INT8 || dtype == RM_UINT8 || dtype == RM_INT16 || dtype == RM_UINT16;
}

// Whether MPI's own reduction has the result that the library promises. Of halves and of bool it
// knows nothing (the latter is a byte here), and a NaN does not always win in its minimum and
// maximum. Open MPI 4.1 adds integers of 8 and 16 bits with saturation where the processor has AVX.
bool HasOwn(rm_dtype dtype, rm_op op) {
  if (dtype == RM_FLOAT16 || dtype == RM_BFLOAT16 || dtype == RM_BOOL) return false;
  if (IsSmallInteger(dtype)) return op == RM_MIN || op == RM_MAX;
  return !IsFloat(dtype) || op == RM_SUM || op == RM_PRODUCT;
}

MPI_Datatype TypeOf(rm_dtype dtype, rm_op op) {
  // Sums and products wrap, which signed integers of C do not. The bits are the same.
  const bool wraps = op == RM_SUM || op == RM_PRODUCT;
  switch (dtype) {
    case RM_UINT8:
    case RM_BOOL:
      return MPI_UINT8_T;
    case RM_INT8:
      return wraps ? MPI_UINT8_T : MPI_INT8_T;
    case RM_FLOAT16:
    case RM_BFLOAT16:
    case RM_UINT16:
      return MPI_UINT16_T;
    case RM_INT16:
      return wraps ? MPI_UINT16_T : MPI_INT16_T;
    case RM_UINT32:
      return MPI_UINT32_T;
    case RM_INT32:
      return wraps ? MPI_UINT32_T : MPI_INT32_T;
    case RM_UINT64:
      return MPI_UINT64_T;
    case RM_INT64:
      return wraps ? MPI_UINT64_T : MPI_INT64_T;
    case RM_FLOAT32:
      return MPI_FLOAT;
    case RM_FLOAT64:
      return MPI_DOUBLE;
    case RM_DTYPE_ANY_INT_:
      break;
  }
  return MPI_BYTE;
}

MPI_Op OpOf(rm_dtype dtype, rm_op op) {
  if (!HasOwn(dtype, op)) return own_ops[static_cast<size_t>(dtype * kOps + op)];
  if (op == RM_PRODUCT) return MPI_PROD;
  if (op == RM_MIN) return MPI_MIN;
  if (op == RM_MAX) return MPI_MAX;
  return MPI_SUM;
}

// Once for the process.
int MakeOps() {
  static bool made = false;
  for (int index = 0; !made && index < kTypes * kOps; ++index) {
    const auto dtype = static_cast<rm_dtype>(index / kOps);
    if (HasOwn(dtype, static_cast<rm_op>(index % kOps))) continue;
    const int code =
        MPI_Op_create(kFunctions.data()[static_cast<size_t>(index)], 1, &own_ops[index]);
    if (code != MPI_SUCCESS) return code;
  }
  made = true;
  return MPI_SUCCESS;
}

const char* Loaded() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "";
  return text;
}

rm_mpi_threads ThreadsOf(int level) {
  if (level == MPI_THREAD_MULTIPLE) return RM_MPI_PARALLEL_THREADS;
  return level == MPI_THREAD_SERIALIZED ? RM_MPI_SERIAL_THREADS : RM_MPI_ONE_THREAD;
}

int Begin(rm_mpi_kernel kernel, int* started, rm_mpi_threads* threads) {
  int before = 0, level = 0;
  int code = MPI_Initialized(&before);
  if (code != MPI_SUCCESS) return code;
  // Also in a later call: the library may begin once more in this process.
  static bool ours = false;
  ours |= before == 0;
  *started = ours;
  code = before != 0 ? MPI_Query_thread(&level)
                     : MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  if (code != MPI_SUCCESS) return code;
  *threads = ThreadsOf(level);
  reduce_kernel = kernel;
  return MakeOps();
}

int Finished() {
  int finished = 0;
  return MPI_Finalized(&finished) != MPI_SUCCESS || finished != 0;
}

int Finish() { return MPI_Finalize(); }

int Place(int* rank, int* size) {
  const int code = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  return code != MPI_SUCCESS ? code : MPI_Comm_size(MPI_COMM_WORLD, size);
}

void Explain(int code, char* out, size_t size) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) text[0] = '\0';
  std::snprintf(out, size, "%s", text);
}

// Begins something: `call` makes the call of MPI. lists: each has `count` numbers, which are kept
// one list after the other. A request that was not begun is freed.
template <typename Call>
int Start(rm_mpi_request** out, std::array<const int*, kMostLists> lists, int count,
          const Call& call) {
  const size_t list_bytes = static_cast<size_t>(count) * sizeof(int);
  void* const memory = std::malloc(sizeof(rm_mpi_request) + kMostLists * list_bytes);
  if (memory == nullptr) return MPI_ERR_NO_MEM;
  auto* const request = static_cast<rm_mpi_request*>(memory);
  request->request = MPI_REQUEST_NULL;
  request->made = nullptr;
  int* to = request->numbers;
  for (const int* list : lists) {
    if (list != nullptr) std::memcpy(to, list, list_bytes);
    to += count;
  }
  const int code = call(request->numbers, &request->request);
  if (code == MPI_SUCCESS) {
    *out = request;
  } else {
    std::free(request);
  }
  return code;
}
template <typename Call>
int Start(rm_mpi_request** out, const Call& call) {
  return Start(out, {}, 0, [&](const int*, MPI_Request* request) { return call(request); });
}

rm_mpi_comm* NewComm() {
  auto* const made = static_cast<rm_mpi_comm*>(std::malloc(sizeof(rm_mpi_comm)));
  if (made != nullptr) made->comm = MPI_COMM_NULL;
  return made;
}

int DupWorld(rm_mpi_comm** comm, rm_mpi_request** request) {
  rm_mpi_comm* const made = NewComm();
  if (made == nullptr) return MPI_ERR_NO_MEM;
  const int code =
      Start(request, [&](MPI_Request* r) { return MPI_Comm_idup(MPI_COMM_WORLD, &made->comm, r); });
  if (code == MPI_SUCCESS) {
    *comm = (*request)->made = made;
  } else {
    std::free(made);
  }
  return code;
}

int MakeGroup(MPI_Comm comm, const int* ranks, int count, int tag, MPI_Comm* out) {
  MPI_Group all, some;
  int code = MPI_Comm_group(comm, &all);
  if (code != MPI_SUCCESS) return code;
  code = MPI_Group_incl(all, count, ranks, &some);
  MPI_Group_free(&all);
  if (code != MPI_SUCCESS) return code;
  code = MPI_Comm_create_group(comm, some, tag, out);
  MPI_Group_free(&some);
  return code != MPI_SUCCESS ? code : MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
}

int Group(rm_mpi_comm* comm, const int* ranks, int count, int tag, rm_mpi_comm** out) {
  rm_mpi_comm* const made = NewComm();
  if (made == nullptr) return MPI_ERR_NO_MEM;
  const int code = MakeGroup(comm->comm, ranks, count, tag, &made->comm);
  if (code == MPI_SUCCESS) {
    *out = made;
  } else {
    std::free(made);
  }
  return code;
}

void FreeComm(rm_mpi_comm* comm) {
  if (Finished() == 0) MPI_Comm_free(&comm->comm);
  std::free(comm);
}

int Allreduce(rm_mpi_comm* comm, const void* in, void* out, int count, rm_dtype dtype, rm_op op,
              rm_mpi_request** request) {
  const void* const from = in == out ? MPI_IN_PLACE : in;
  return Start(request, [&](MPI_Request* r) {
    return MPI_Iallreduce(from, out, count, TypeOf(dtype, op), OpOf(dtype, op), comm->comm, r);
  });
}

int ReduceScatter(rm_mpi_comm* comm, const void* in, void* out, const int* counts, int ranks,
                  rm_dtype dtype, rm_op op, rm_mpi_request** request) {
  return Start(request, {counts}, ranks, [&](const int* kept, MPI_Request* r) {
    return MPI_Ireduce_scatter(in, out, kept, TypeOf(dtype, op), OpOf(dtype, op), comm->comm, r);
  });
}

int Allgatherv(rm_mpi_comm* comm, const void* send, int send_bytes, void* recv, const int* bytes,
               const int* at, int ranks, rm_mpi_request** request) {
  return Start(request, {bytes, at}, ranks, [&](const int* kept, MPI_Request* r) {
    return MPI_Iallgatherv(send, send_bytes, MPI_BYTE, recv, kept, kept + ranks, MPI_BYTE,
                           comm->comm, r);
  });
}

int Broadcast(rm_mpi_comm* comm, void* data, int bytes, int root, rm_mpi_request** request) {
  return Start(request, [&](MPI_Request* r) {
    return MPI_Ibcast(data, bytes, MPI_BYTE, root, comm->comm, r);
  });
}

int Alltoallv(rm_mpi_comm* comm, const void* send, const int* send_bytes, const int* send_at,
              void* recv, const int* recv_bytes, const int* recv_at, int ranks,
              rm_mpi_request** request) {
  return Start(request, {send_bytes, send_at, recv_bytes, recv_at}, ranks,
               [&](const int* kept, MPI_Request* r) {
                 return MPI_Ialltoallv(send, kept, kept + ranks, MPI_BYTE, recv, kept + 2 * ranks,
                                       kept + 3 * ranks, MPI_BYTE, comm->comm, r);
               });
}

int Barrier(rm_mpi_comm* comm, rm_mpi_request** request) {
  return Start(request, [&](MPI_Request* r) { return MPI_Ibarrier(comm->comm, r); });
}

int Test(rm_mpi_request* request, int* done) {
  *done = 0;
  int code = MPI_Test(&request->request, done, MPI_STATUS_IGNORE);
  if (*done == 0) return code;
  // Errors of MPI_COMM_WORLD end the process, unless the script says otherwise; ours do not.
  if (code == MPI_SUCCESS && request->made != nullptr)
    code = MPI_Comm_set_errhandler(request->made->comm, MPI_ERRORS_RETURN);
  std::free(request);
  return code;
}

constexpr rm_mpi_plugin kPlugin = {
    RM_MPI_PLUGIN_VERSION,
#if defined(OPEN_MPI)
    "Open MPI",
#elif defined(MPICH_VERSION) || defined(I_MPI_VERSION)
    "MPICH",
#else
    "",
#endif
    Loaded,
    Begin,
    Finished,
    Finish,
    Place,
    Explain,
    DupWorld,
    Group,
    FreeComm,
    Allreduce,
    ReduceScatter,
    Allgatherv,
    Broadcast,
    Alltoallv,
    Barrier,
    Test,
};

}  // namespace

const rm_mpi_plugin* rm_mpi_plugin_get(void) { return &kPlugin; }
