#include "collectives/gpu_health/xid.h"

#include <gtest/gtest.h>

namespace ringmaster::gpu_health {
namespace {

struct Case {
  std::uint64_t number;
  XidKind kind;
};

class XidTable : public testing::TestWithParam<Case> {};

TEST_P(XidTable, SaysWhetherTheGpuGoesOn) {
  const Xid xid = ExplainXid(GetParam().number);
  EXPECT_EQ(xid.kind, GetParam().kind) << xid.text;
  EXPECT_EQ(xid.text.rfind("Xid " + std::to_string(GetParam().number), 0), 0u) << xid.text;
}

constexpr XidKind kFailing = XidKind::kFailing, kWarning = XidKind::kWarning,
                  kOther = XidKind::kOther;

INSTANTIATE_TEST_SUITE_P(Xids, XidTable,
                         testing::Values(Case{13, kOther}, Case{31, kOther}, Case{43, kOther},
                                         Case{45, kOther}, Case{48, kFailing}, Case{62, kFailing},
                                         Case{63, kWarning}, Case{64, kFailing}, Case{68, kOther},
                                         Case{74, kFailing}, Case{79, kFailing}, Case{92, kWarning},
                                         Case{94, kFailing}, Case{95, kFailing}, Case{109, kOther},
                                         Case{119, kFailing}, Case{120, kFailing},
                                         Case{140, kFailing}, Case{0, kOther}, Case{~0ull, kOther}),
                         [](const auto& info) { return std::to_string(info.param.number); });

}  // namespace
}  // namespace ringmaster::gpu_health
