#include "operator/cli/pod_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sync/pause.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::chrono::seconds kPatience{20};
constexpr std::chrono::milliseconds kBetween{100};

// One pod's log: some text is there, more follows, and then it ends or stays open.
class ApiWithALog : public local::InMemoryApi {
 public:
  ApiWithALog() : InMemoryApi(std::make_shared<local::Store>(local::StoreOptions{})) {}

  kube::Result<void> PodLog(const std::string&, const std::string& pod, const std::string&,
                            bool follow, const std::function<bool(std::string_view)>& on_text,
                            std::stop_token stop) override {
    if (pod == "endless") {
      on_text("half");
      while (!stop.stop_requested()) std::this_thread::yield();
      return {};
    }
    if (pod == "slow") {
      // Longer than a reader waits for the first of them.
      for (int i = 0; i < 30 && !stop.stop_requested(); ++i) {
        on_text(std::to_string(i) + "\n");
        sync::Pause(stop, kBetween);
      }
      return {};
    }
    on_text("old 1\nold");
    if (follow) on_text(" 2\nnew\nlast");
    return {};
  }
};

class PodOutputsTest : public testing::Test {
 protected:
  std::vector<std::string> Lines() {
    const sync::MutexLock lock(&mu_);
    return lines_;
  }

  sync::Mutex mu_;
  std::vector<std::string> lines_ GUARDED_BY(mu_);
  PodOutputs outputs_{std::make_shared<ApiWithALog>(),
                      [this](const std::string& ns, const std::string& pod, std::string line) {
                        const sync::MutexLock lock(&mu_);
                        lines_.push_back(ns + "/" + pod + ": " + line);
                      }};
};

TEST_F(PodOutputsTest, TellsWholeLinesFromTheBeginningToTheEnd) {
  EXPECT_TRUE(outputs_.Follow("ns", "p", "uid"));
  EXPECT_FALSE(outputs_.Follow("ns", "p", "uid"));
  outputs_.Finish(kPatience, kPatience);
  EXPECT_THAT(Lines(), ElementsAre("ns/p: old 1", "ns/p: old 2", "ns/p: new", "ns/p: last"));
}

TEST_F(PodOutputsTest, DoesNotWaitForALogThatGoesOn) {
  outputs_.Follow("ns", "endless", "uid");
  EXPECT_THAT(Lines(), IsEmpty());
  outputs_.Finish({}, {});
  EXPECT_THAT(Lines(), ElementsAre("ns/endless: half"));
}

TEST_F(PodOutputsTest, WaitsForALogWhileItGrows) {
  outputs_.Follow("ns", "slow", "uid");
  outputs_.Finish(kBetween * 20, kPatience);
  EXPECT_THAT(Lines(), testing::SizeIs(30));
}

}  // namespace
}  // namespace ringmaster::cli
