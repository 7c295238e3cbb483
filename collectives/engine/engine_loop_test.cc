#include "collectives/engine/engine_loop.h"

#include <gtest/gtest.h>

#include "collectives/engine/fake_communicator.h"
#include "collectives/engine/fake_listener.h"

namespace ringmaster::engine {
namespace {

std::shared_ptr<Operation> Named(const std::string& name) {
  Request request;
  request.name = name;
  return std::make_shared<Operation>(std::move(request), nullptr, nullptr);
}

// Stands for a user's thread that is faster than the loop: it asks for an operation after the loop
// has taken its messages and before it has acted on them.
class AskingListener : public FakeListener {
 public:
  explicit AskingListener(Inbox* inbox) : inbox_(inbox) {}
  void OnStopped(uint64_t) override {
    asked = Named("a");
    EXPECT_TRUE(inbox_->Submit(asked).ok());
  }
  std::shared_ptr<Operation> asked;

 private:
  Inbox* const inbox_;
};

TEST(EngineLoopTest, WhatIsAskedForInTheMomentOfTheCloseEndsWithIt) {
  Inbox inbox;
  UserTasks users;
  EngineInfo info;
  HostCommunicator host;
  FakeFactory factory;
  AskingListener listener(&inbox);
  EngineOptions options;
  options.communicators = &factory;
  options.listener = &listener;
  EngineLoop loop(options, &inbox, &users, &info, &host);
  inbox.PostStop(1);
  inbox.PostClose();
  loop.Run();
  ASSERT_TRUE(listener.asked != nullptr);
  ASSERT_TRUE(listener.asked->done()) << "its user would wait for ever";
  EXPECT_EQ(listener.asked->status().code(), RM_ERR_SHUTDOWN);
}

}  // namespace
}  // namespace ringmaster::engine
