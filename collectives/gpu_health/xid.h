// What an Xid, an error that NVIDIA's driver reports by number, says about the GPU.
//
// Numbers and meanings are those of NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors); which
// of them mean that a training had better leave the GPU is our own reading of it. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace ringmaster::gpu_health {

enum class XidKind {
  kFailing,  // the GPU won't go on, or not before it is reset
  kWarning,  // it goes on, and people should look at it
  kOther,    // the program's fault, or a consequence of another error
};

struct Xid {
  XidKind kind = XidKind::kOther;
  std::string text;  // "Xid 79, it has fallen off the bus"
};

Xid ExplainXid(std::uint64_t number);

}  // namespace ringmaster::gpu_health
