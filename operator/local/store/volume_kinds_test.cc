#include "operator/local/store/volume_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/resources.h"
#include "operator/local/store/store.h"

namespace ringmaster::local {
namespace {

using testing::HasSubstr;

Json Spec(Json volume) {
  volume["name"] = "v";
  return {{"containers", {{{"name", "main"}, {"image", "any"}}}},
          {"volumes", {{{"name", "fine"}, {"emptyDir", Json::object()}}, std::move(volume)}}};
}
Json Pod(const Json& volume) { return {{"metadata", {{"name", "p"}}}, {"spec", Spec(volume)}}; }
Json Job(const Json& volume) {
  return {{"metadata", {{"name", "j"}}},
          {"spec", {{"worker", {{"replicas", 1}, {"template", {{"spec", Spec(volume)}}}}}}}};
}
std::string Message(const Answer<Json>& answer) {
  return answer ? "" : answer.error()["message"].get<std::string>();
}

TEST(VolumeKinds, AVolumeThatLocalModeCantGiveIsRefusedWithWhatItCan) {
  Store store(StoreOptions{.local_volumes_only = true});
  struct Case {
    Json volume;
    const char* message;
  };
  for (const auto& [volume, message] : std::vector<Case>{
           {{{"persistentVolumeClaim", {{"claimName", "data"}}}},
            "volumes[1].persistentVolumeClaim: Unsupported value: {\"claimName\":\"data\"}: local "
            "mode gives a claim as a folder of yours: `ringmaster run --volume data=DIR`"},
           {{{"nfs", {{"server", "s"}}}},
            "volumes[1].nfs: Unsupported value: {\"server\":\"s\"}: local mode gives emptyDir"},
           {{{"projected", {{"sources", {{{"serviceAccountToken", {{"path", "t"}}}}}}}}},
            "volumes[1].projected.sources[0].serviceAccountToken: Unsupported value"}}) {
    EXPECT_THAT(Message(store.Create(kube::Pods(), "default", Pod(volume))),
                HasSubstr(std::string("spec.") + message));
    EXPECT_THAT(Message(store.Create(kube::HorovodJobs(), "default", Job(volume))),
                HasSubstr(std::string("spec.worker.template.spec.") + message));
  }
}

TEST(VolumeKinds, AVolumeIsNamedAsOnACluster) {
  Store store(StoreOptions{.local_volumes_only = true});
  for (const char* name : {"../../../evil", "", "Data", "a/b"}) {
    Json pod = Pod({{"emptyDir", Json::object()}});
    pod["spec"]["volumes"][1]["name"] = name;
    EXPECT_THAT(Message(store.Create(kube::Pods(), "default", pod)),
                HasSubstr(std::string("spec.volumes[1].name: Invalid value: \"") + name + "\""));
  }
}

TEST(VolumeKinds, WhatLocalModeGivesIsTaken) {
  Store store(StoreOptions{.local_volumes_only = true});
  int n = 0;
  for (const Json& volume :
       std::vector<Json>{{{"hostPath", {{"path", "/x"}}}},
                         {{"configMap", {{"name", "c"}}}},
                         {{"secret", {{"secretName", "s"}}}},
                         {{"downwardAPI", {{"items", Json::array()}}}},
                         {{"projected", {{"sources", {{{"configMap", {{"name", "c"}}}}}}}}},
                         Json::object()}) {
    Json pod = Pod(volume);
    pod["metadata"]["name"] = "p" + std::to_string(++n);
    EXPECT_EQ(Message(store.Create(kube::Pods(), "default", pod)), "") << volume;
  }
}

TEST(VolumeKinds, AJobDoesNotGetOneByAChange) {
  Store store(StoreOptions{.local_volumes_only = true});
  ASSERT_EQ(Message(store.Create(kube::HorovodJobs(), "default", Job(Json::object()))), "");
  Json job = store.Get(kube::HorovodJobs(), "default", "j").value();
  job["spec"]["worker"]["template"]["spec"]["volumes"][1]["nfs"] = {{"server", "s"}};
  EXPECT_THAT(Message(store.Update(kube::HorovodJobs(), "default", "j", job, "")),
              HasSubstr("volumes[1].nfs"));
}

}  // namespace
}  // namespace ringmaster::local
