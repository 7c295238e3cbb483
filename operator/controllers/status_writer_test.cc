#include "operator/controllers/status_writer.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StatusWriterTest : public testing::PartsTest {
 protected:
  Json Job() { return *api_->Get(kube::HorovodJobs(), "default", "digits"); }
  api::Status Written() { return api::StatusFromJson(Job().value("status", Json::object())); }
  StatusWriter status_{api_, &jobs_, &events_, &backoff_, nullptr};
};

TEST_F(StatusWriterTest, WhatIsWrittenIsInTheCacheAtOnce) {
  api::Status status = job_.status;
  status.state = "Running";
  EXPECT_TRUE(status_.Write(job_, object_, status));
  EXPECT_EQ(Written().state, "Running");
  EXPECT_EQ((*jobs_.Get("default", "digits"))["status"]["state"], "Running");
}

TEST_F(StatusWriterTest, ACrdThatIsTooOldForTheStatusIsToldOfOnce) {
  api_->unknown_status_field = "runningSince";
  api::Status status = job_.status;
  status.running_since = "2026-01-31T12:00:00Z";
  EXPECT_TRUE(status_.Write(job_, object_, status));
  EXPECT_THAT(EventReasons(), ElementsAre("CrdTooOld"));
  job_ = *api::ParseHorovodJob(Job());
  EXPECT_TRUE(status_.Write(job_, Job(), status));
  EXPECT_THAT(EventReasons(), ElementsAre("CrdTooOld"));
}

TEST_F(StatusWriterTest, TheSameStatusIsNotWrittenAgain) {
  api_->refused_verb = "update";
  EXPECT_TRUE(status_.Write(job_, object_, job_.status));
  api::Status status = job_.status;
  status.state = "Running";
  EXPECT_FALSE(status_.Write(job_, object_, status));
}

TEST_F(StatusWriterTest, AWrongSpecIsToldOfOnce) {
  EXPECT_TRUE(status_.WriteInvalid(object_, "spec.worker: is missing"));
  EXPECT_EQ(Written().state, "Invalid");
  ASSERT_NE(Written().Find("Created"), nullptr);
  EXPECT_EQ(Written().Find("Created")->message, "spec.worker: is missing");
  EXPECT_THAT(EventReasons(), ElementsAre("InvalidSpec"));
  api_->refused_verb = "update";
  EXPECT_TRUE(status_.WriteInvalid(Job(), "spec.worker: is missing")) << "it is there already";
}

TEST_F(StatusWriterTest, ARecordThatCantBeReadIsShownWhenItIsNoNews) {
  const kube::Error broken = {.code = kube::ErrorCode::kInternal, .message = "not JSON"};
  for (int i = 0; i < 10; ++i) {
    status_.WriteRecordUnreadable(job_, Job(), broken);
    job_ = *api::ParseHorovodJob(Job());
  }
  ASSERT_NE(Written().Find("Created"), nullptr);
  EXPECT_EQ(Written().Find("Created")->reason, "RecordUnusable");
  EXPECT_THAT(EventReasons(), ::testing::Contains("FailedRecord"));
}

}  // namespace
}  // namespace ringmaster::controllers
