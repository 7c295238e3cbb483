#include "common/logging/grpc_log.h"

#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include "common/logging/log.h"

namespace ringmaster::logging {
namespace {

std::string Printed(const char* level) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // its default, once gRPC is used
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Begin({.level = level}));
  {
    const GrpcLines lines;
    gpr_log(GPR_ERROR, "Handshake %s", "timed out");
  }
  gpr_log(GPR_ERROR, "after the end");
  logging::Flush();
  return testing::internal::GetCapturedStderr();
}

TEST(GrpcLinesTest, AreOursAndForWhoeverLooksForTheCauseOfSomething) {
  EXPECT_EQ(Printed("info"), "");
  const std::string line = Printed("debug");
  EXPECT_THAT(line, testing::MatchesRegex("20[0-9:.TZ-]+ debug grpc at=grpc_log_test.cc:[0-9]+ "
                                          "severity=E text=\"Handshake timed out\"\n"));
}

}  // namespace
}  // namespace ringmaster::logging
