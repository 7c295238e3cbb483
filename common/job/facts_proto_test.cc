#include "common/job/facts_proto.h"

#include <gtest/gtest.h>

namespace ringmaster::job {
namespace {

TEST(FactsProto, ARegistrationArrivesAsItWasSent) {
  const Registration sent = {.job_namespace = "ns",
                             .job_name = "digits",
                             .job_uid = "job",
                             .pod_name = "digits-worker-0",
                             .pod_uid = "pod",
                             .http_address = "h:1",
                             .epoch = 7,
                             .boot_id = "boot"};
  EXPECT_EQ(FromProto(ToProto(sent)), sent);
}

TEST(FactsProto, AnExitArrivesAsItWasSent) {
  const WorkerExit sent = {.slot = 1,
                           .exit_code = 137,
                           .restarting = true,
                           .by_us = true,
                           .incarnation = 3,
                           .signal = 9};
  EXPECT_EQ(FromProto(ToProto(sent)), sent);
}

TEST(FactsProto, EveryFieldOfTheMessagesIsInAStruct) {
  // Fails when a field was added to a message but not to its struct, so that nobody would read it.
  EXPECT_EQ(v1::Registration::descriptor()->field_count(), 8);
  EXPECT_EQ(v1::WorkerExit::descriptor()->field_count(), 6);
}

}  // namespace
}  // namespace ringmaster::job
