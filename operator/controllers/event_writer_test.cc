#include "operator/controllers/event_writer.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

class EventWriterTest : public testing::PartsTest {
 protected:
  Json TheEvent() {
    const auto events = api_->ListAll(kube::Events(), "default", {});
    EXPECT_TRUE(events && events->items.size() == 1);
    return events && !events->items.empty() ? events->items[0] : Json::object();
  }
};

TEST_F(EventWriterTest, AnEventIsAboutTheJob) {
  events_.EmitEvent(job_, {true, "StepsLost", "three of them", ""});
  const Json event = TheEvent();
  EXPECT_EQ(event["reason"], "StepsLost");
  EXPECT_EQ(event["note"], "three of them");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["regarding"]["kind"], api::kKind);
  EXPECT_EQ(event["regarding"]["uid"], job_.uid);
}

TEST_F(EventWriterTest, OneThatNamesAPodIsAboutThePod) {
  const Json pod = MakePod(0);
  events_.EmitEvent(job_, {false, "Draining", "it leaves", "digits-worker-0"});
  EXPECT_EQ(TheEvent()["regarding"]["uid"], pod["metadata"]["uid"]);
}

TEST_F(EventWriterTest, OneAboutAPodThatIsNotKnownIsAboutTheJob) {
  events_.EmitEvent(job_, {false, "Draining", "it leaves", "digits-worker-7"});
  EXPECT_EQ(TheEvent()["regarding"]["kind"], api::kKind);
}

}  // namespace
}  // namespace ringmaster::controllers
