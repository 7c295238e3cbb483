// Events as each of the API servers accepts them.
#include <gtest/gtest.h>

#include "operator/local/testing/conformance.h"
#include "operator/runtime/event_recorder.h"

namespace ringmaster::runtime {
namespace {

using kube::Json;

class EventRecorderServersTest : public local::testing::OnEveryServer {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnEveryServer::SetUp());
    events_ = std::make_unique<EventRecorder>(api_, "operator-0");
  }
  void Record(const std::string& name, const std::string& note) {
    events_->Record({"v1", "Pod", ns_, name, "uid-of-" + name, "7"}, true, "PodFailed", "Reconcile",
                    note);
  }
  std::vector<Json> Events() {
    const auto events = api_->ListAll(kube::Events(), ns_, {});
    EXPECT_TRUE(events) << events.error().message;
    return events ? events->items : std::vector<Json>{};
  }
  std::unique_ptr<EventRecorder> events_;
};

TEST_P(EventRecorderServersTest, AnEventIsKeptAsItWasSaid) {
  Record("digits-worker-0", "it ended");
  const auto events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["reason"], "PodFailed");
  EXPECT_EQ(events[0]["note"], "it ended");
  EXPECT_EQ(events[0]["type"], "Warning");
  EXPECT_EQ(events[0]["regarding"]["uid"], "uid-of-digits-worker-0");
  EXPECT_EQ(events[0]["reportingInstance"], "operator-0");
}

TEST_P(EventRecorderServersTest, TheSameAgainRaisesTheCountOfTheOneThereIs) {
  for (int i = 0; i < 3; ++i) Record("digits-worker-0", "it ended");
  const auto events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["series"]["count"], 3);
}

TEST_P(EventRecorderServersTest, AnEventThatIsGoneMeanwhileIsSaidAnew) {
  Record("digits-worker-0", "it ended");
  const auto events = Events();
  ASSERT_EQ(events.size(), 1u);
  const std::string name = events[0]["metadata"]["name"];
  ASSERT_TRUE(api_->Delete(kube::Events(), ns_, name, {}));
  Record("digits-worker-0", "it ended");
  EXPECT_EQ(Events().size(), 1u);
}

TEST_P(EventRecorderServersTest, ALongNoteIsTaken) {
  std::string note = "x";
  for (int i = 0; i < 600; ++i) note += "\u00e9";  // two bytes each
  Record("digits-worker-0", note);
  EXPECT_EQ(Events().size(), 1u);
}

RM_ON_EVERY_SERVER(EventRecorderServersTest);

}  // namespace
}  // namespace ringmaster::runtime
