// The objects of a job on an API server: made, mended, renewed, and never taken from anybody else.
#include "operator/controllers/job_object_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <set>

#include "operator/controllers/authority.h"
#include "operator/controllers/pod_builder.h"
#include "operator/kube/base64.h"
#include "operator/local/in_memory_api.h"
#include "operator/local/store.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class JobObjectKeeperTest : public testing::Test {
 protected:
  JobObjectKeeperTest() {
    // Everything belongs to its job: without one it would be collected at once.
    const auto owner = api_->Create(kube::HorovodJobs(), "default",
                                    {{"apiVersion", api::kApiVersion},
                                     {"kind", api::kKind},
                                     {"metadata", {{"name", "digits"}}}});
    EXPECT_TRUE(owner) << owner.error().message;
    job_.name = "digits";
    job_.uid = (*owner)["metadata"]["uid"].get<std::string>();
    job_.spec.elastic_policy.min_replicas = 2;
    JobObjectOptions options;
    options.authority = authority_;
    options.secret_check = std::chrono::milliseconds(0);
    keeper_ = std::make_unique<JobObjectKeeper>(api_, options, [this](const std::string& key) {
      const std::lock_guard lock(mu_);
      changed_.insert(key);
      wake_.notify_all();
    });
    keeper_->Start();
    for (runtime::Informer* informer : keeper_->informers()) {
      EXPECT_TRUE(informer->WaitForSync(std::chrono::seconds(20)));
    }
  }
  ~JobObjectKeeperTest() override { keeper_->Stop(); }

  std::vector<std::string> Keep() {
    std::vector<std::string> messages;
    for (const kube::Error& problem : keeper_->Keep(job_).problems) {
      messages.push_back(problem.message);
    }
    return messages;
  }
  // The next word that something of the job has changed.
  bool Changed() {
    std::unique_lock lock(mu_);
    const bool so =
        wake_.wait_for(lock, std::chrono::seconds(20), [&] { return !changed_.empty(); });
    EXPECT_THAT(changed_, ElementsAre("default/digits"));
    changed_.clear();
    return so;
  }
  Json Get(const kube::Resource& resource, const std::string& name) {
    const auto object = api_->Get(resource, "default", name);
    return object ? *object : Json::object();
  }
  // Until the caches have seen it: Keep looks at them.
  bool KeepUntil(const std::function<bool()>& so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      Keep();
      if (so()) return true;
      if (!Changed()) return false;
    }
    return false;
  }

  const std::shared_ptr<kube::KubeApi> api_ =
      std::make_shared<local::InMemoryApi>(std::make_shared<local::Store>(local::StoreOptions{}));
  const tls::KeyPair authority_ =
      *LoadAuthority(api_.get(), "default", std::chrono::system_clock::now());
  api::HorovodJob job_;
  std::mutex mu_;
  std::condition_variable wake_;
  std::set<std::string> changed_;
  std::unique_ptr<JobObjectKeeper> keeper_;
};

TEST_F(JobObjectKeeperTest, MakesAllOfThem) {
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_EQ(Get(kube::Services(), "digits-workers")["spec"]["clusterIP"], "None");
  EXPECT_EQ(Get(kube::PodDisruptionBudgets(), "digits-workers")["spec"]["minAvailable"], 2);
  EXPECT_TRUE(Get(kube::NetworkPolicies(), "digits-workers").contains("spec"));
  const Json secret = Get(kube::Secrets(), "digits-tls");
  EXPECT_EQ(WhyRenew(secret, job_, authority_.certificate_pem, std::chrono::system_clock::now()),
            "");
  // A second look changes nothing.
  const std::string version = secret["metadata"]["resourceVersion"];
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_EQ(Get(kube::Secrets(), "digits-tls")["metadata"]["resourceVersion"], version);
}

TEST_F(JobObjectKeeperTest, TheBudgetFollowsMinReplicas) {
  Keep();
  job_.spec.elastic_policy.min_replicas = 5;
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_EQ(Get(kube::PodDisruptionBudgets(), "digits-workers")["spec"]["minAvailable"], 5);
}

TEST_F(JobObjectKeeperTest, WhatIsDeletedComesBack) {
  Keep();
  const std::pair<kube::Resource, std::string> objects[] = {
      {kube::Services(), "digits-workers"},
      {kube::PodDisruptionBudgets(), "digits-workers"},
      {kube::NetworkPolicies(), "digits-workers"},
      {kube::Secrets(), "digits-tls"}};
  for (const auto& [resource, name] : objects) {
    ASSERT_TRUE(api_->Delete(resource, "default", name, {}));
    EXPECT_TRUE(KeepUntil([&, resource = resource, name = name] {
      return Get(resource, name).contains("metadata");
    })) << resource.kind;
  }
}

TEST_F(JobObjectKeeperTest, WhatIsChangedIsMended) {
  Keep();
  ASSERT_TRUE(api_->Patch(kube::Services(), "default", "digits-workers",
                          {{"spec", {{"publishNotReadyAddresses", false}}}}, {}));
  EXPECT_TRUE(KeepUntil([&] {
    return Get(kube::Services(), "digits-workers")["spec"]["publishNotReadyAddresses"] == true;
  }));
}

TEST_F(JobObjectKeeperTest, ACertificateOfAnotherAuthorityIsReplaced) {
  const auto other = *tls::MakeAuthority(std::chrono::system_clock::now(), std::chrono::hours(24));
  const auto pair = *tls::Issue(other, {tls::JobName(job_.uid)}, std::chrono::system_clock::now(),
                                std::chrono::hours(24));
  ASSERT_TRUE(
      api_->Create(kube::Secrets(), "default", BuildTlsSecret(job_, other.certificate_pem, pair)));
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_EQ(WhyRenew(Get(kube::Secrets(), "digits-tls"), job_, authority_.certificate_pem,
                     std::chrono::system_clock::now()),
            "");
}

TEST_F(JobObjectKeeperTest, WhatIsSomebodyElsesIsLeftAloneAndNamed) {
  ASSERT_TRUE(api_->Create(kube::Services(), "default",
                           {{"apiVersion", "v1"},
                            {"kind", "Service"},
                            {"metadata", {{"name", "digits-workers"}}},
                            {"spec", {{"type", "ClusterIP"}}}}));
  ASSERT_TRUE(api_->Create(kube::Secrets(), "default",
                           {{"apiVersion", "v1"},
                            {"kind", "Secret"},
                            {"metadata", {{"name", "digits-tls"}}},
                            {"data", {{"mine", kube::EncodeBase64("x")}}}}));
  EXPECT_THAT(Keep(), ElementsAre(HasSubstr("Secret digits-tls is not this job's"),
                                  HasSubstr("Service digits-workers is not this job's")));
  EXPECT_EQ(Get(kube::Secrets(), "digits-tls")["data"].size(), 1u);
  EXPECT_FALSE(Get(kube::Services(), "digits-workers")["spec"].contains("selector"));
}

TEST_F(JobObjectKeeperTest, WhatLooksLikeOursIsNotTakenOverEither) {
  ASSERT_TRUE(api_->Create(
      kube::Services(), "default",
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata",
        {{"name", "digits-workers"},
         {"labels",
          {{kManagedByLabel, kManagedBy}, {"training.kubeflow.org/job-name", "digits"}}}}},
       {"spec", {{"type", "ClusterIP"}}}}));
  ASSERT_TRUE(Changed()) << "the cache has it";
  EXPECT_THAT(Keep(), ElementsAre(HasSubstr("Service digits-workers is not this job's")));
  EXPECT_FALSE(Get(kube::Services(), "digits-workers")["spec"].contains("selector"));
}

TEST_F(JobObjectKeeperTest, WhatCanNotBeMadeIsSaid) {
  job_.ns = "nowhere";
  EXPECT_EQ(Keep().size(), 4u) << "Secret, Service, PodDisruptionBudget, NetworkPolicy";
}

TEST_F(JobObjectKeeperTest, WithoutNetworkPoliciesNoneIsMadeOrWatched) {
  JobObjectOptions options;
  options.network_policy.enabled = false;
  JobObjectKeeper keeper(api_, options, [](const std::string&) {});
  EXPECT_EQ(keeper.informers().size(), 2u);
  EXPECT_THAT(keeper.Keep(job_).problems, IsEmpty());
  EXPECT_FALSE(Get(kube::NetworkPolicies(), "digits-workers").contains("spec"));
  EXPECT_FALSE(Get(kube::Secrets(), "digits-tls").contains("data")) << "nor a Secret without TLS";
}

TEST_F(JobObjectKeeperTest, TheyGoWithTheJob) {
  Keep();
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), "default", "digits", {}));
  EXPECT_FALSE(Get(kube::Services(), "digits-workers").contains("metadata"));
  EXPECT_FALSE(Get(kube::Secrets(), "digits-tls").contains("metadata"));
}

TEST_F(JobObjectKeeperTest, ASecondOperatorHasTheSameAuthority) {
  const auto again = LoadAuthority(api_.get(), "default", std::chrono::system_clock::now());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->key_pem, authority_.key_pem);
}

// Another operator makes the Secret between our look and our write.
class RacingApi final : public local::InMemoryApi {
 public:
  using InMemoryApi::InMemoryApi;
  kube::Result<Json> Create(const kube::Resource& resource, const std::string& ns,
                            const Json& object) override {
    if (!raced_ && resource.plural == "secrets") {
      raced_ = true;
      first = LoadAuthority(this, ns, std::chrono::system_clock::now())->key_pem;
    }
    return InMemoryApi::Create(resource, ns, object);
  }
  std::string first;

 private:
  bool raced_ = false;
};

TEST(AuthorityTest, WhoComesSecondTakesWhatIsThere) {
  RacingApi api(std::make_shared<local::Store>(local::StoreOptions{}));
  const auto mine = LoadAuthority(&api, "default", std::chrono::system_clock::now());
  ASSERT_TRUE(mine) << mine.error().message;
  EXPECT_NE(api.first, "");
  EXPECT_EQ(mine->key_pem, api.first);
}

TEST(AuthorityTest, ASecretThatCanNotBeUsedIsNamedWithTheWayOut) {
  local::InMemoryApi api(std::make_shared<local::Store>(local::StoreOptions{}));
  ASSERT_TRUE(api.Create(kube::Secrets(), "default",
                         {{"apiVersion", "v1"},
                          {"kind", "Secret"},
                          {"metadata", {{"name", kAuthoritySecret}}},
                          {"data", {{"tls.crt", kube::EncodeBase64("nonsense")}}}}));
  const auto authority = LoadAuthority(&api, "default", std::chrono::system_clock::now());
  ASSERT_FALSE(authority);
  EXPECT_THAT(authority.error().message, HasSubstr("secret default/ringmaster-ca: tls.crt: no "
                                                   "certificate in PEM form; delete it"));
  const auto now = std::chrono::system_clock::now();
  const auto write = [&](const std::string& certificate, const std::string& key) {
    return api.Patch(
        kube::Secrets(), "default", kAuthoritySecret,
        {{"data",
          {{"tls.crt", kube::EncodeBase64(certificate)}, {"tls.key", kube::EncodeBase64(key)}}}},
        {});
  };
  const auto old = *tls::MakeAuthority(now - std::chrono::hours(48), std::chrono::hours(24));
  const auto other = *tls::MakeAuthority(now, std::chrono::hours(24 * 365));
  ASSERT_TRUE(write(old.certificate_pem, old.key_pem));
  EXPECT_THAT(LoadAuthority(&api, "default", now).error().message, HasSubstr("has expired"));
  ASSERT_TRUE(write(other.certificate_pem, old.key_pem));
  EXPECT_THAT(LoadAuthority(&api, "default", now).error().message,
              HasSubstr("tls.key is not the key of tls.crt"));
  ASSERT_TRUE(write(other.certificate_pem, other.key_pem));
  EXPECT_TRUE(LoadAuthority(&api, "default", now));
  const auto nowhere = LoadAuthority(&api, "nowhere", std::chrono::system_clock::now());
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("--operator-namespace"));
}

}  // namespace
}  // namespace ringmaster::controllers
