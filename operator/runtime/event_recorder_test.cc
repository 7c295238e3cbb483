#include "operator/runtime/event_recorder.h"

#include <gtest/gtest.h>

#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::runtime {
namespace {

using kube::Json;

class EventRecorderTest : public testing::Test {
 protected:
  void Record(const std::string& reason, const std::string& note,
              const std::string& uid = "uid-1") {
    events_.Record({"v1", "Pod", "ns", "digits-worker-0", uid, "7"}, true, reason, "Reconcile",
                   note);
  }
  std::shared_ptr<ScriptedApi> api_ = std::make_shared<ScriptedApi>();
  EventRecorder events_{api_, "operator-0"};
};

TEST_F(EventRecorderTest, AnEventSaysWhatHappenedToWhichObject) {
  Record("PodFailed", "it ended");
  ASSERT_EQ(api_->created.size(), 1u);
  const Json& event = api_->created[0];
  EXPECT_EQ(event["apiVersion"], "events.k8s.io/v1");
  EXPECT_EQ(event["reason"], "PodFailed");
  EXPECT_EQ(event["note"], "it ended");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["metadata"]["namespace"], "ns");
  EXPECT_EQ(event["regarding"]["name"], "digits-worker-0");
  EXPECT_EQ(event["regarding"]["uid"], "uid-1");
  EXPECT_EQ(event["reportingInstance"], "operator-0");
}

TEST_F(EventRecorderTest, TheSameAgainRaisesACountInsteadOfMakingAnother) {
  for (int i = 0; i < 3; ++i) Record("PodFailed", "it ended");
  ASSERT_EQ(api_->created.size(), 1u);
  ASSERT_EQ(api_->patched.size(), 2u);
  for (const Json& patch : api_->patched) {
    EXPECT_EQ(patch["name"], api_->created[0]["metadata"]["name"]);
  }
  EXPECT_EQ(api_->patched[0]["patch"]["series"]["count"], 2);
  EXPECT_EQ(api_->patched[1]["patch"]["series"]["count"], 3);
}

TEST_F(EventRecorderTest, AnotherReasonNoteOrObjectIsAnotherEvent) {
  Record("PodFailed", "it ended");
  Record("PodLost", "it ended");
  Record("PodFailed", "it ended again");
  Record("PodFailed", "it ended", "uid-2");
  EXPECT_EQ(api_->created.size(), 4u);
  EXPECT_TRUE(api_->patched.empty());
}

TEST_F(EventRecorderTest, AnEventThatCouldNotBeWrittenIsNotCountedButMade) {
  api_->refuse_creates = 1;
  Record("PodFailed", "it ended");
  Record("PodFailed", "it ended");
  EXPECT_EQ(api_->created.size(), 1u);
  EXPECT_TRUE(api_->patched.empty());
}

TEST_F(EventRecorderTest, ALongNoteIsCutBetweenCharacters) {
  std::string note = "x";
  for (int i = 0; i < 600; ++i) note += "\u00e9";  // two bytes each: the limit falls inside one
  Record("PodFailed", note);
  ASSERT_EQ(api_->created.size(), 1u);
  EXPECT_NO_THROW((void)api_->created[0].dump()) << "half a character is no JSON";
  const std::string written = api_->created[0]["note"];
  EXPECT_LE(written.size(), 1000u);
  EXPECT_EQ(note.compare(0, written.size(), written), 0);
}

TEST_F(EventRecorderTest, ItsMemoryHasAnEnd) {
  for (int i = 0; i <= 4096; ++i) Record("PodFailed", std::to_string(i));
  api_->created.clear();
  Record("PodFailed", "0");
  EXPECT_EQ(api_->created.size(), 1u) << "forgotten, and so an event of its own again";
}

}  // namespace
}  // namespace ringmaster::runtime
