#include "operator/controllers/event_writer.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

class EventWriterTest : public testing::PartsTest {
 protected:
  Json TheEvent() {
    EXPECT_TRUE(events_.Flush(std::chrono::seconds(20)));
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

TEST_F(EventWriterTest, OneThatConcernsAPodIsAboutTheJobToo) {
  const Json pod = MakePod(0);
  events_.EmitEvent(job_, {false, "Draining", "it leaves", "digits-worker-0"});
  const Json event = TheEvent();
  EXPECT_EQ(event["regarding"]["uid"], job_.uid) << "the pod goes, and what is said of it stays";
  EXPECT_EQ(event["related"]["uid"], pod["metadata"]["uid"]);
}

TEST_F(EventWriterTest, APodThatIsNotKnownIsNotRelated) {
  events_.EmitEvent(job_, {false, "Draining", "it leaves", "digits-worker-7"});
  EXPECT_FALSE(TheEvent().contains("related"));
}

}  // namespace
}  // namespace ringmaster::controllers
