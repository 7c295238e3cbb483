#include "collectives/sidecar_client/sidecar_client.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collectives/sidecar_client/fake_sidecar.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::sidecar_client {
namespace {

class Worker : public SidecarHandler {
 public:
  nlohmann::json Hello() override {
    return {{"t", "hello"}, {"version", 1}, {"role", "worker"}, {"slot", 0}, {"incarnation", 1}};
  }
  nlohmann::json PingFields() override { return nlohmann::json::object(); }
  void OnFrame(const nlohmann::json&) override {}
  void OnFenced(const std::string&) override {}
  void OnHeardAgain() override {}
};

TEST(SidecarClientTest, APingThatIsAskedForDoesNotWaitForItsTime) {
  const support::TempDir directory;
  const std::string socket = directory.path() / "s";
  FakeSidecar sidecar(socket);
  sidecar.SetPing(1'000'000);
  sidecar.SetFence(2'000'000);
  Worker worker;
  SidecarClient client({socket}, &worker);
  client.Start();
  EXPECT_TRUE(sidecar.AwaitHeard(0, "ping", 1));  // the first follows the welcome
  client.PingNow();
  EXPECT_TRUE(sidecar.AwaitHeard(0, "ping", 2));
  EXPECT_EQ(sidecar.heard(0, "ping"), 2);
}

}  // namespace
}  // namespace ringmaster::sidecar_client
