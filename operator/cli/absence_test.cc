#include "operator/cli/absence.h"

#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

const Neighbours kThere{
    .ns = "team",
    .jobs = {"digits", "mnist"},
    .pods = {
        {"digits-worker-0", "digits"}, {"digits-worker-1", "digits"}, {"mnist-worker-0", "mnist"}}};

TEST(AbsenceTest, ANameThatIsNotThereIsAnsweredWithWhatThereIs) {
  EXPECT_EQ(AbsenceText(NameKind::kJob, "digts", kThere),
            "there is no job \"digts\" in namespace \"team\"; did you mean digits?");
  EXPECT_EQ(AbsenceText(NameKind::kJob, "other", kThere),
            "there is no job \"other\" in namespace \"team\"; there is digits, mnist");
  EXPECT_EQ(AbsenceText(NameKind::kPod, "digits-worker-2", kThere),
            "there is no pod \"digits-worker-2\" in namespace \"team\"; did you mean "
            "digits-worker-0?");
  EXPECT_EQ(AbsenceText(NameKind::kPodOrJob, "other", kThere),
            "there is no pod or job \"other\" in namespace \"team\"; there is digits, mnist, "
            "digits-worker-0, digits-worker-1, mnist-worker-0");
  EXPECT_EQ(AbsenceText(NameKind::kJob, "digits", {.ns = "team"}),
            "there is no job \"digits\" in namespace \"team\", and no other");
}

TEST(AbsenceTest, APodIsToldFromAJob) {
  EXPECT_EQ(AbsenceText(NameKind::kJob, "mnist-worker-0", kThere),
            "\"mnist-worker-0\" is a pod of job \"mnist\", and a job is wanted");
  EXPECT_EQ(AbsenceText(NameKind::kPod, "digits", kThere),
            "\"digits\" is a job, and a pod is wanted; the job has digits-worker-0, "
            "digits-worker-1");
  EXPECT_EQ(AbsenceText(NameKind::kPod, "digits", {.ns = "team", .jobs = {"digits"}}),
            "\"digits\" is a job, and a pod is wanted; the job has none");
}

TEST(AbsenceTest, OfManyNamesAFewAreSaid) {
  const Neighbours many{.ns = "n", .jobs = {"a", "b", "c", "d", "e", "f"}};
  EXPECT_EQ(AbsenceText(NameKind::kJob, "other", many),
            "there is no job \"other\" in namespace \"n\"; there is a, b, c, d, e, ...");
}

TEST(AbsenceTest, AnotherRunThatHasTheJobIsNamed) {
  Neighbours there = kThere;
  there.elsewhere = {"/run/a"};
  EXPECT_EQ(AbsenceText(NameKind::kJob, "digts", there),
            "there is no job \"digts\" in namespace \"team\" of this run; another run has that "
            "job: --run-dir /run/a");
}

}  // namespace
}  // namespace ringmaster::cli
