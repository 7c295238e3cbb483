#include "collectives/engine/names_in_flight.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ringmaster::engine {
namespace {

std::shared_ptr<Operation> Asked(Request request) {
  return std::make_shared<Operation>(std::move(request), nullptr, nullptr);
}

Status EnterOne(NamesInFlight* names, const Request& request) {
  const auto operation = Asked(request);
  return names->Enter(std::span(&operation, 1));
}

TEST(NamesInFlightTest, ANameThatIsInFlightIsRefusedUntilItIsFree) {
  NamesInFlight names;
  EXPECT_TRUE(EnterOne(&names, {.name = "a"}).ok());
  EXPECT_EQ(EnterOne(&names, {.name = "a"}).message(),
            "'a' is already in flight: wait for it, or use another name");
  names.Free(Request{.name = "a"});
  EXPECT_TRUE(EnterOne(&names, {.name = "a"}).ok());
  names.FreeAll();
  EXPECT_TRUE(EnterOne(&names, {.name = "a"}).ok());
}

TEST(NamesInFlightTest, OfSeveralOperationsAllEnterOrNone) {
  NamesInFlight names;
  ASSERT_TRUE(EnterOne(&names, {.name = "b"}).ok());
  const std::vector operations = {Asked({.name = "a"}), Asked({.name = "b"}), Asked({.name = "c"})};
  EXPECT_EQ(names.Enter(operations).code(), RM_ERR_INVALID);
  EXPECT_TRUE(EnterOne(&names, {.name = "a"}).ok()) << "it did not stay in flight";
  EXPECT_EQ(EnterOne(&names, {.name = "b"}).code(), RM_ERR_INVALID) << "that one is still there";
}

TEST(NamesInFlightTest, TheAnswerOfAnotherProcessSetFreesNoNameOfThisRank) {
  NamesInFlight names;
  ASSERT_TRUE(EnterOne(&names, {.name = "a", .process_set = 1}).ok());
  Response response;
  response.requests = {{.name = "unknown", .process_set = 1}, {.name = "a", .process_set = 2}};
  names.Free(response);
  EXPECT_EQ(EnterOne(&names, {.name = "a", .process_set = 1}).code(), RM_ERR_INVALID);
  response.requests = {{.name = "a", .process_set = 1}};
  names.Free(response);
  EXPECT_TRUE(EnterOne(&names, {.name = "a", .process_set = 1}).ok());
}

TEST(NamesInFlightTest, TwoPairsOfWorkersMayHaveATransferOfTheSameName) {
  NamesInFlight names;
  Request transfer = {.name = "a", .kind = Kind::kTransfer, .members = {"worker 0", "worker 1"}};
  EXPECT_TRUE(EnterOne(&names, transfer).ok());
  EXPECT_FALSE(EnterOne(&names, transfer).ok());
  transfer.members = {"worker 0", "worker 2"};
  EXPECT_TRUE(EnterOne(&names, transfer).ok());
}

TEST(NamesInFlightTest, ASecondStepEndIsToldWhoIsInTheWay) {
  NamesInFlight names;
  const Request step_end = {.name = kStepEndName, .kind = Kind::kStepEnd};
  EXPECT_TRUE(EnterOne(&names, step_end).ok());
  EXPECT_EQ(EnterOne(&names, step_end).message(), "another thread is in rm_step_end");
}

}  // namespace
}  // namespace ringmaster::engine
