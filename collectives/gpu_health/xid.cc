#include "collectives/gpu_health/xid.h"

namespace ringmaster::gpu_health {
namespace {

struct Known {
  std::uint64_t number;
  XidKind kind;
  const char* what;
};

constexpr Known kKnown[] = {
    {48, XidKind::kFailing, "an uncorrectable error of its memory"},
    {62, XidKind::kFailing, "its micro-controller has halted"},
    {63, XidKind::kWarning, "a row of its memory is to be remapped at the next reset"},
    {64, XidKind::kFailing, "a row of its memory could not be remapped"},
    {74, XidKind::kFailing, "an error of its NVLink"},
    {79, XidKind::kFailing, "it has fallen off the bus"},
    {92, XidKind::kWarning, "many errors of its memory had to be corrected"},
    {94, XidKind::kFailing, "a contained error of its memory, which needs a reset"},
    {95, XidKind::kFailing, "an uncontained error of its memory"},
    {119, XidKind::kFailing, "its GSP does not answer"},
    {120, XidKind::kFailing, "an error of its GSP"},
    {140, XidKind::kFailing, "an unrecovered error of its memory"},
};

}  // namespace

Xid ExplainXid(std::uint64_t number) {
  const std::string name = "Xid " + std::to_string(number);
  for (const Known& known : kKnown) {
    if (known.number == number) return {known.kind, name + ", " + known.what};
  }
  return {XidKind::kOther, name};
}

}  // namespace ringmaster::gpu_health
