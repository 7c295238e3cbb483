// The part of PMIx's binary interface that is used here (the PMIx Standard, version 4.1: types and
// functions of chapters 3, 5 and 6; their numbers are in pmix_common.h). It has not changed since
// version 2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringmaster::process_manager::pmix {

using Status = int;
inline constexpr Status kSuccess = 0, kDoneAtOnce = -157;

struct Process {
  char job[256];
  uint32_t rank;
};
inline constexpr uint32_t kAllRanks = UINT32_MAX - 1;

struct Value {
  uint16_t type;
  union {
    char* string;
    uint32_t uint32;
    uint64_t room[8];  // more than the largest type that PMIx puts here
  };
};
inline constexpr uint16_t kString = 3, kUint32 = 14;

inline constexpr uint8_t kToAll = 3;  // the scope of a value that is put: all processes
inline constexpr char kJobSize[] = "pmix.job.size";

struct Info;  // no info is ever given

extern "C" {
using Done = void (*)(Status, void* context);
using Found = void (*)(Status, Value*, void* context);
using Init = Status(Process*, Info*, size_t);
using Finalize = Status(const Info*, size_t);
using Put = Status(uint8_t scope, const char* key, Value*);
using Commit = Status();
using Fence = Status(const Process*, size_t, const Info*, size_t, Done, void* context);
using Get = Status(const Process*, const char* key, const Info*, size_t, Found, void* context);
using Text = const char*(Status);
}

}  // namespace ringmaster::process_manager::pmix
