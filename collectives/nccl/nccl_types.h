// The values and layouts of NCCL's C interface that we use, declared here because NCCL is loaded at
// run time and need not be there when this is compiled. Source: nccl.h of NCCL 2.14 to 2.32;
// nccl_abi_test compares them with a real header.
//
// Thread rule: values.
#pragma once

#include <climits>
#include <cstddef>

namespace ringmaster::nccl {

enum class Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum class DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

// Not an enum class: RedOpCreatePreMulSum makes further values.
using RedOp = int;
inline constexpr RedOp kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4;

inline constexpr int kScalarOnHost = 1;  // the scalar is read before RedOpCreatePreMulSum returns

struct UniqueId {
  char bytes[128];
};

// The configuration as NCCL 2.14 had it, the first with nonblocking communicators. Later versions
// have more fields behind these, and give them their defaults when `version` is an earlier one.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
  // Padding in 2.14, the field cgaClusterSize in later versions. This is NCCL's mark for "not set".
  int not_set = INT_MIN;
};

inline constexpr int kShrinkDefault = 0, kShrinkAbort = 1;
inline constexpr int kRevokeDefault = 0;

// Versions as ncclGetVersion counts them: 2.27.3 is 22703.
// The oldest that is used. Nonblocking communicators are older (2.14), but what a call leaves in
// progress then belonged to the calling thread (NCCL 2.17 and 2.18 keep it in a thread-local
// variable), and an abort on another thread, as ours are, didn't end it. In 2.20.5 it belongs to
// the communicator.
inline constexpr int kOldest = 22005;
inline constexpr int kFirstShrink = 22700;
inline constexpr int kFirstRevoke = 22900;  // 2.28 has it, too, but it is trusted only from 2.29 on

}  // namespace ringmaster::nccl
