#include "collectives/elastic/worker_registration.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::elastic {
namespace {

using Json = nlohmann::json;

Json Welcome(const std::string& state) {
  return {{"t", "welcome"}, {"state", state}, {"slot", 3}, {"incarnation", 7}};
}

const auto kNow = WorkerRegistration::Clock::time_point::min();

TEST(WorkerRegistrationTest, AWelcomeGivesRoleAndIdentity) {
  WorkerRegistration registration(0, 1, false, "0.1.0");
  Role role = Role::kUnknown;
  EXPECT_EQ(registration.AwaitRole(kNow, &role).code(), RM_ERR_TIMEOUT);
  registration.Welcomed(Welcome("bootstrap"));
  ASSERT_TRUE(registration.AwaitRole(kNow, &role).ok());
  EXPECT_EQ(role, Role::kBootstrap);
  const Json hello = registration.Hello({"1.2.3.4:5", "name", 0});
  EXPECT_EQ(hello["slot"], 3);
  EXPECT_EQ(hello["incarnation"], 7);
  EXPECT_EQ(hello["tcp"], "1.2.3.4:5");
  EXPECT_EQ(hello["library"], "0.1.0");
}

TEST(WorkerRegistrationTest, AProcessThatWasRestartedInAMembersSlotJoins) {
  WorkerRegistration restarted(0, 1, false);
  restarted.Welcomed(Welcome("member"));
  EXPECT_EQ(restarted.role(), Role::kJoining);

  WorkerRegistration reconnected(0, 1, false);
  reconnected.Welcomed(Welcome("bootstrap"));
  reconnected.Welcomed(Welcome("member"));
  EXPECT_EQ(reconnected.role(), Role::kBootstrap);
}

TEST(WorkerRegistrationTest, AStandbyHasNoRoleUntilItIsPromoted) {
  WorkerRegistration registration(0, 1, true);
  EXPECT_EQ(registration.Hello({})["standby"], true);
  registration.Welcomed(Welcome("standby"));
  Role role = Role::kUnknown;
  EXPECT_FALSE(registration.Dropped());
  EXPECT_EQ(registration.role(), Role::kStandby) << "also while its sidecar is away";
  registration.SidecarSilent(kNow);
  registration.SidecarHeard();
  EXPECT_EQ(registration.silence_ends(), WorkerRegistration::Clock::time_point::max());
  registration.SidecarSilent(kNow);
  EXPECT_EQ(registration.AwaitRole(WorkerRegistration::Clock::time_point::max(), &role).code(),
            RM_ERR_UNAVAILABLE);
  registration.Promoted(Welcome(""));
  EXPECT_TRUE(registration.AwaitRole(kNow, &role).ok());
  EXPECT_EQ(role, Role::kJoining);
  EXPECT_EQ(registration.Hello({})["standby"], false);
}

TEST(WorkerRegistrationTest, ASidecarThatStartsAgainHearsWhatItMayNotKnow) {
  WorkerRegistration registration(0, 1, false);
  registration.Welcomed(Welcome("joining"));
  EXPECT_TRUE(registration.RequestEntry());
  EXPECT_FALSE(registration.RequestEntry());
  EXPECT_TRUE(registration.Welcomed(Welcome("joining")).enter);
  registration.Given(9);
  registration.Installed(9);
  EXPECT_FALSE(registration.Welcomed(Welcome("member")).enter);
  registration.AtBoundary(9, 4);
  const auto repeat = registration.Welcomed(Welcome("member"));
  EXPECT_EQ(repeat.boundary_epoch, 9u);
  EXPECT_EQ(repeat.boundary_step, 4u);
  registration.Given(10);
  registration.Installed(10);
  EXPECT_EQ(registration.Welcomed(Welcome("member")).boundary_epoch, 0u);
}

TEST(WorkerRegistrationTest, WhoIsInAViewThatHasComeNeedNotAskToBeLetIn) {
  WorkerRegistration registration(0, 1, false);
  registration.Welcomed(Welcome("joining"));
  registration.Given(9);
  registration.Installed(9);
  EXPECT_FALSE(registration.RequestEntry()) << "the sidecar would take it for a fenced one";
  EXPECT_TRUE(registration.Dropped()) << "but its user waits, and says so for the next view";
  registration.EndWait();
  EXPECT_FALSE(registration.Dropped());
  EXPECT_TRUE(registration.RequestEntry());
}

TEST(WorkerRegistrationTest, WhoWasToBeginTheJobDoesNotAskToJoinIt) {
  for (const bool told_by_welcome : {true, false}) {
    WorkerRegistration registration(0, 1, false);
    registration.Welcomed(Welcome("bootstrap"));
    EXPECT_TRUE(registration.RequestEntry());
    if (told_by_welcome) {
      EXPECT_FALSE(registration.Welcomed(Welcome("joining")).enter);
    } else {
      EXPECT_FALSE(registration.Dropped());
    }
    EXPECT_EQ(registration.role(), Role::kJoining);
    registration.EndWait();
    EXPECT_TRUE(registration.RequestEntry()) << "when its script does";
    registration.EndWait();
    EXPECT_FALSE(registration.Dropped());
    EXPECT_TRUE(registration.Welcomed(Welcome("bootstrap")).enter) << "the job has not begun";
  }
}

// The view of the worker was installed, and then given up before the user was let in. The sidecar
// has forgotten what the user waits for.
TEST(WorkerRegistrationTest, AWorkerWhoseUserWaitsSaysSoToASidecarThatCallsItAJoiner) {
  WorkerRegistration registration(0, 1, false);
  registration.Welcomed(Welcome("joining"));
  EXPECT_TRUE(registration.RequestEntry());
  registration.Given(9);
  registration.Installed(9);
  EXPECT_TRUE(registration.Welcomed(Welcome("joining")).enter);
  EXPECT_EQ(registration.Hello({})["epoch"], 0);
  registration.Given(10);
  registration.Installed(10);
  registration.EndWait();
  EXPECT_FALSE(registration.Welcomed(Welcome("joining")).enter);
}

// A connection that is broken stays broken until the next view, and the sidecar that was told of it
// may have died since.
TEST(WorkerRegistrationTest, TroublesOfTheViewAreSaidAgain) {
  WorkerRegistration registration(0, 1, false);
  EXPECT_TRUE(registration.Welcomed(Welcome("bootstrap")).troubles.empty());
  registration.Given(9);
  registration.Installed(9);
  registration.InTrouble({9, 2, "reset", true});
  const auto again = registration.Welcomed(Welcome("member")).troubles;
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].epoch, 9u);
  EXPECT_EQ(again[0].rank, 2);
  EXPECT_EQ(again[0].why, "reset");
  EXPECT_TRUE(again[0].broken);
  registration.Given(10);
  registration.Installed(10);
  EXPECT_TRUE(registration.Welcomed(Welcome("member")).troubles.empty());
  registration.InTrouble({10, 1, "reset"});
  EXPECT_TRUE(registration.Welcomed(Welcome("joining")).troubles.empty());
}

TEST(WorkerRegistrationTest, AViewThatWasLeftIsNotEnteredAgain) {
  WorkerRegistration registration(0, 1, false);
  registration.Welcomed(Welcome("joining"));
  EXPECT_TRUE(registration.Given(9));
  registration.Installed(9);
  registration.Dropped();
  registration.Welcomed(Welcome("member"));  // by a sidecar that has started again
  EXPECT_FALSE(registration.Given(9));
  EXPECT_TRUE(registration.RequestEntry()) << "its user has to ask";
  EXPECT_TRUE(registration.Given(10));
  EXPECT_EQ(registration.Hello({})["given"], 10);
}

TEST(WorkerRegistrationTest, AViewThatHasComeIsNamedBeforeItIsInstalled) {
  WorkerRegistration registration(0, 1, false);
  registration.Welcomed(Welcome("bootstrap"));
  registration.Given(9);
  EXPECT_EQ(registration.Hello({})["given"], 9);
  EXPECT_EQ(registration.Hello({})["epoch"], 0);
  registration.Dropped();
  registration.Installed(9);  // the engine's thread says so late
  EXPECT_EQ(registration.Hello({})["given"], 0);
  EXPECT_EQ(registration.Hello({})["epoch"], 0);
}

TEST(WorkerRegistrationTest, AFailureEndsTheWait) {
  WorkerRegistration registration(0, 1, false);
  registration.Failed("the job is over");
  Role role = Role::kUnknown;
  EXPECT_EQ(registration.AwaitRole(kNow, &role).code(), RM_ERR_INTERNAL);
}

}  // namespace
}  // namespace ringmaster::elastic
