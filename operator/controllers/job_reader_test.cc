#include "operator/controllers/job_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/testing/job_object.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

runtime::ObjectPtr Stored(Json object) { return std::make_shared<const Json>(std::move(object)); }

Json Job() {
  Json job = api::testing::JobObject("digits", 2, 1);
  job["metadata"]["resourceVersion"] = "1";
  job["metadata"]["uid"] = "u";
  return job;
}

class JobReaderTest : public testing::Test {
 protected:
  JobReader::JobPtr Read(const runtime::ObjectPtr& object) {
    const auto job = reader_.Read("default/digits", object);
    EXPECT_TRUE(job) << api::ToString(job.error());
    return job ? *job : nullptr;
  }
  // What is kept must never be told from what is read anew.
  void ExpectAsParsed(const Json& object) {
    const auto read = reader_.Read("default/digits", Stored(object));
    const auto parsed = api::ParseHorovodJob(object, api::UnknownFields::kIgnore);
    ASSERT_EQ(read.has_value(), parsed.has_value()) << object;
    if (!read) {
      EXPECT_EQ(api::ToString(read.error()), api::ToString(parsed.error()));
      return;
    }
    EXPECT_EQ((*read)->spec, parsed->spec) << object;
    EXPECT_EQ((*read)->status, parsed->status) << object;
    EXPECT_EQ((*read)->annotations, parsed->annotations) << object;
    EXPECT_EQ((*read)->queue, parsed->queue) << object;
    EXPECT_EQ((*read)->resource_version, parsed->resource_version) << object;
    EXPECT_EQ((*read)->generation, parsed->generation) << object;
    EXPECT_EQ((*read)->deleting, parsed->deleting) << object;
    EXPECT_EQ((*read)->uid, parsed->uid) << object;
  }
  JobReader reader_;
};

TEST_F(JobReaderTest, FieldsOfALaterCrdAreIgnoredWhereverTheyStand) {
  Json job = Job();
  const JobReader::JobPtr known = Read(Stored(job));
  job["spec"]["moreOfIt"] = "Default";
  job["spec"]["elasticPolicy"]["fastest"] = 3;
  job["spec"]["worker"]["template"]["spec"]["newInKubernetes"] = true;
  const JobReader::JobPtr read = Read(Stored(job));
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->spec.elastic_policy, known->spec.elastic_policy);
  EXPECT_THAT(read->ignored_fields,
              testing::UnorderedElementsAre("spec.moreOfIt", "spec.elasticPolicy.fastest",
                                            "spec.worker.template.spec.newInKubernetes"));
  EXPECT_FALSE(api::ParseHorovodJob(job)) << "a manifest is read strictly";
  job["spec"]["elasticPolicy"]["minReplicas"] = 99;
  const auto wrong = reader_.Read("default/digits", Stored(job));
  ASSERT_FALSE(wrong) << "sizes are checked all the same";
  EXPECT_EQ(wrong.error().size(), 1u) << api::ToString(wrong.error());
}

TEST_F(JobReaderTest, AnObjectIsReadOnce) {
  const runtime::ObjectPtr object = Stored(Job());
  const JobReader::JobPtr first = Read(object);
  EXPECT_EQ(Read(object), first);
  reader_.Forget("default/digits");
  EXPECT_NE(Read(object), first);
}

TEST_F(JobReaderTest, WhateverChangesIsReadAsIfForTheFirstTime) {
  ExpectAsParsed(Job());
  for (const char* change : {
           R"({"status": {"state": "Running", "epoch": 7}, "metadata": {"resourceVersion": "2"}})",
           R"({"status": {"state": "Running"}})",
           R"({"status": null})",
           R"({"metadata": {"generation": 2}})",
           R"({"metadata": {"uid": "v"}})",
           R"({"metadata": {"annotations": {"a": "b"}}})",
           R"({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}})",
           R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})",
           R"({"spec": {"worker": {"replicas": 3}}})",
           R"({"spec": {"worker": {"replicas": 99}}})",
           R"({"spec": {"worker": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}})",
           R"({"spec": {"slotsPerWorker": "many"}})",
           R"({"apiVersion": "v1"})",
           R"({"more": 1})",
       }) {
    Json object = Job();
    object.merge_patch(Json::parse(change));
    ExpectAsParsed(object);
    ExpectAsParsed(Job());
  }
}

// A value that an earlier version accepted is refused only in a job that no operator has taken up.
TEST_F(JobReaderTest, WhatIsRefusedInANewJobIsReadAnewOnceTheJobIsTakenUp) {
  Json object = Job();
  object["spec"]["collectives"]["backend"] = "Mpi";
  object["status"]["startTime"] = "2026-01-01T00:00:00Z";
  ExpectAsParsed(object);
  object["status"].erase("startTime");
  ExpectAsParsed(object);
}

}  // namespace
}  // namespace ringmaster::controllers
