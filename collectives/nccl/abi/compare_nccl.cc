// Compiled by nccl_abi_test against NCCL's own header: fails where nccl_types.h says something
// else.
#include <nccl.h>

#include <cstddef>

#include "collectives/nccl/nccl_types.h"

namespace ours = ringmaster::nccl;

#define SAME(mine, theirs) static_assert(static_cast<int>(mine) == static_cast<int>(theirs))

SAME(ours::Result::kSuccess, ncclSuccess);
SAME(ours::Result::kUnhandledCudaError, ncclUnhandledCudaError);
SAME(ours::Result::kSystemError, ncclSystemError);
SAME(ours::Result::kInternalError, ncclInternalError);
SAME(ours::Result::kInvalidArgument, ncclInvalidArgument);
SAME(ours::Result::kInvalidUsage, ncclInvalidUsage);
SAME(ours::Result::kRemoteError, ncclRemoteError);
SAME(ours::Result::kInProgress, ncclInProgress);
SAME(ours::DataType::kInt8, ncclInt8);
SAME(ours::DataType::kUint8, ncclUint8);
SAME(ours::DataType::kInt32, ncclInt32);
SAME(ours::DataType::kUint32, ncclUint32);
SAME(ours::DataType::kInt64, ncclInt64);
SAME(ours::DataType::kUint64, ncclUint64);
SAME(ours::DataType::kFloat16, ncclFloat16);
SAME(ours::DataType::kFloat32, ncclFloat32);
SAME(ours::DataType::kFloat64, ncclFloat64);
SAME(ours::DataType::kBfloat16, ncclBfloat16);
SAME(ours::kSum, ncclSum);
SAME(ours::kProd, ncclProd);
SAME(ours::kMax, ncclMax);
SAME(ours::kMin, ncclMin);
SAME(ours::kAvg, ncclAvg);
SAME(ours::kScalarOnHost, ncclScalarHostImmediate);
SAME(ours::kShrinkDefault, NCCL_SHRINK_DEFAULT);
SAME(ours::kShrinkAbort, NCCL_SHRINK_ABORT);
SAME(ours::kRevokeDefault, NCCL_REVOKE_DEFAULT);
SAME(ours::kFirstShrink, NCCL_VERSION(2, 27, 0));
SAME(ours::kFirstRevoke, NCCL_VERSION(2, 29, 0));
SAME(ours::kOldest, NCCL_VERSION(2, 20, 5));

static_assert(sizeof(ours::UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(ncclRedOp_t) == sizeof(ours::RedOp));
static_assert(sizeof(ncclDataType_t) == sizeof(ours::DataType));
static_assert(sizeof(ncclResult_t) == sizeof(ours::Result));

// Ours is the beginning of theirs.
static_assert(offsetof(ours::Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(ours::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(ours::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(ours::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(ours::Config, not_set) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(ours::Config().not_set == NCCL_CONFIG_UNDEF_INT);
static_assert(sizeof(ours::Config) <= sizeof(ncclConfig_t));
static_assert(ours::Config().magic == NCCL_API_MAGIC);
static_assert(ours::Config().version == NCCL_VERSION(2, 14, 0));

// The functions, with the arguments that we give them.
template <typename... Arguments>
using Theirs = ncclResult_t (*)(Arguments...);
[[maybe_unused]] Theirs<ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*> init =
    ncclCommInitRankConfig;
[[maybe_unused]] Theirs<ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int> shrink =
    ncclCommShrink;
[[maybe_unused]] Theirs<ncclComm_t, int> revoke = ncclCommRevoke;
[[maybe_unused]] Theirs<ncclComm_t> abort_comm = ncclCommAbort;
[[maybe_unused]] Theirs<ncclComm_t, ncclResult_t*> async_error = ncclCommGetAsyncError;
[[maybe_unused]] Theirs<ncclUniqueId*> unique_id = ncclGetUniqueId;
[[maybe_unused]] Theirs<int*> version = ncclGetVersion;
[[maybe_unused]] Theirs<> group_start = ncclGroupStart, group_end = ncclGroupEnd;
[[maybe_unused]] Theirs<ncclRedOp_t, ncclComm_t> destroy_op = ncclRedOpDestroy;
[[maybe_unused]] const char* (*error_string)(ncclResult_t) = ncclGetErrorString;
[[maybe_unused]] const char* (*last_error)(ncclComm_t) = ncclGetLastError;
[[maybe_unused]] Theirs<const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                        cudaStream_t>
    all_reduce = ncclAllReduce,
    reduce_scatter = ncclReduceScatter;
[[maybe_unused]] Theirs<const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t>
    broadcast = ncclBroadcast;
[[maybe_unused]] Theirs<const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                        cudaStream_t>
    reduce = ncclReduce;
[[maybe_unused]] Theirs<const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t>
    all_gather = ncclAllGather;
[[maybe_unused]] Theirs<const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t> send =
    ncclSend;
[[maybe_unused]] Theirs<void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t> recv =
    ncclRecv;
[[maybe_unused]] Theirs<ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t, ncclComm_t>
    pre_mul_sum = ncclRedOpCreatePreMulSum;
