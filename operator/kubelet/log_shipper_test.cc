#include "operator/kubelet/log_shipper.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/kubelet/testing/absent_api.h"
#include "operator/local/server/collected_logs.h"
#include "tests/support/temp_dir.h"
#include "tests/support/until.h"

namespace ringmaster::kubelet {
namespace {

using support::Until;

class LogShipperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api_->take_log = [this](const kube::Json& chunk) { return collected_.Take(chunk); };
  }
  // Prints "one" and starts.
  bool FirstLineArrives() {
    Print("one\n");
    Show(true);
    shipper_.Start();
    return Until([&] { return Arrived() == "one\n"; });
  }
  void Print(const std::string& text) {
    std::ofstream(dir_.path() / "here.log", std::ios::app) << text;
  }
  void Show(bool running) {
    const sync::MutexLock lock(&mu_);
    shown_ = {{"default", "p", "u1", "main", {dir_.path() / "here.log", 0, running, true}}};
  }
  std::vector<PodLogFile> Shown() {
    const sync::MutexLock lock(&mu_);
    return shown_;
  }
  std::string Arrived() {
    std::ifstream file(dir_.path() / "there/p/main.log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const support::TempDir dir_;
  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  const std::shared_ptr<testing::AbsentApi> api_ = std::make_shared<testing::AbsentApi>(store_);
  local::CollectedLogs collected_{dir_.path() / "there", store_};
  sync::Mutex mu_;
  std::vector<PodLogFile> shown_ GUARDED_BY(mu_);
  LogShipper shipper_{api_, [this] { return Shown(); }};
};

TEST_F(LogShipperTest, WhatIsPrintedArrivesInOrder) {
  ASSERT_TRUE(FirstLineArrives());
  const std::string much(1'000'000, 'x');
  Print(much);
  ASSERT_TRUE(Until([&] { return Arrived() == "one\n" + much; }));
}

TEST_F(LogShipperTest, ItGoesOnWhenTheServerIsBack) {
  ASSERT_TRUE(FirstLineArrives());
  api_->away = true;
  Print("two\n");
  ASSERT_TRUE(Until([&] { return api_->refused > 0; }));
  Print("three\n");
  api_->away = false;
  ASSERT_TRUE(Until([&] { return Arrived() == "one\ntwo\nthree\n"; }));
}

TEST_F(LogShipperTest, ThePodsLastWordsArriveThoughItIsGone) {
  ASSERT_TRUE(FirstLineArrives());
  Print("two\n");
  {
    const sync::MutexLock lock(&mu_);
    shown_.clear();
  }
  EXPECT_TRUE(shipper_.Stop(std::chrono::seconds(30)));
  EXPECT_EQ(Arrived(), "one\ntwo\n");
}

TEST_F(LogShipperTest, ItSaysWhetherTheServerHasGotAllOfIt) {
  ASSERT_TRUE(FirstLineArrives());
  api_->away = true;
  Print("two\n");
  EXPECT_FALSE(shipper_.Stop(std::chrono::milliseconds(0)));
  EXPECT_EQ(Arrived(), "one\n");
  api_->away = false;
  EXPECT_TRUE(shipper_.Stop(std::chrono::milliseconds(0)));
  EXPECT_EQ(Arrived(), "one\ntwo\n");
}

TEST_F(LogShipperTest, WhatBeganAfterTheLastLookArrivesAtTheEnd) {
  Print("one\n");
  Show(false);
  const auto here = std::this_thread::get_id();
  LogShipper late(api_, [this, here] {
    return std::this_thread::get_id() == here ? Shown() : std::vector<PodLogFile>{};
  });
  late.Start();
  EXPECT_TRUE(late.Stop(std::chrono::seconds(30)));
  EXPECT_EQ(Arrived(), "one\n");
}

}  // namespace
}  // namespace ringmaster::kubelet
