#include "operator/controllers/job_state_cleaner.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

class JobStateCleanerTest : public testing::PartsTest {
 protected:
  void Hear(const std::string& job_uid) {
    (void)registry_.Connect({.job_namespace = "default",
                             .job_name = "digits",
                             .job_uid = job_uid,
                             .pod_name = "digits-worker-0",
                             .pod_uid = "pod-of-" + job_uid},
                            nullptr);
  }
  bool Known(const std::string& job_uid) { return !registry_.Facts(job_uid).sidecars.empty(); }
  bool Waits(const std::string& job_uid) {
    job_.uid = job_uid;
    return backoff_.Waits(job_, Needed::kPods);
  }

  QuorumRecordStore records_{api_};
  JobObserver observer_{api_, {&registry_, &records_, &pods_, &nodes_}, &queue_, {}};
  JobStateCleaner cleaner_{{&registry_, &records_, &observer_, &backoff_}};
};

TEST_F(JobStateCleanerTest, AnotherJobOfTheNameTakesNothingOver) {
  Hear("first");
  job_.uid = "first";
  backoff_.Failed(job_, Needed::kPods, {.code = kube::ErrorCode::kForbidden});
  cleaner_.Forget("default/digits", "first");
  EXPECT_TRUE(Known("first") && Waits("first")) << "it is still that one";
  cleaner_.Forget("default/digits", "second");
  EXPECT_FALSE(Known("first") || Waits("first"));
}

TEST_F(JobStateCleanerTest, OfAJobThatIsGoneNothingIsKept) {
  Hear("first");
  job_.uid = "first";
  backoff_.Failed(job_, Needed::kPods, {.code = kube::ErrorCode::kForbidden});
  cleaner_.Forget("default/digits", "first");
  cleaner_.Forget("default/digits", "");
  EXPECT_FALSE(Known("first") || Waits("first"));
}

}  // namespace
}  // namespace ringmaster::controllers
