// The objects of a job on an API server: created, corrected, renewed, and never taken over from
// another owner.
#include "operator/controllers/child_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <set>
#include <utility>

#include "operator/api/labels.h"
#include "operator/api/testing/job_object.h"
#include "operator/controllers/certificate_authority.h"
#include "operator/kube/base64.h"
#include "operator/kube/testing/wrapped_api.h"
#include "operator/local/testing/conformance.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class ChildObjectsTest : public local::testing::OnEveryServer {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnEveryServer::SetUp());
    const auto authority =
        LoadCertificateAuthority(api_.get(), ns_, std::chrono::system_clock::now());
    ASSERT_TRUE(authority) << authority.error().message;
    authority_ = *authority;
    // Everything belongs to its job: without it the objects would be collected at once.
    const auto owner =
        api_->Create(kube::HorovodJobs(), ns_, api::testing::JobObject("digits", 2, 2));
    ASSERT_TRUE(owner) << owner.error().message;
    const auto job = api::ParseHorovodJob(*owner);
    ASSERT_TRUE(job) << api::ToString(job.error());
    job_ = *job;
    ChildObjectOptions options;
    options.authority = authority_;
    options.secret_check = std::chrono::milliseconds(0);
    options.watch_namespaces = {ns_};
    child_objects_ = std::make_unique<ChildObjects>(api_, options, [this](const std::string& key) {
      const std::lock_guard lock(mu_);
      changed_.insert(key);
      wake_.notify_all();
    });
    child_objects_->Start();
    for (runtime::Informer* informer : child_objects_->informers()) {
      ASSERT_TRUE(informer->WaitForSync(support::kPatience)) << informer->LastError();
    }
  }
  void TearDown() override {
    if (child_objects_ != nullptr) child_objects_->Stop();
  }

  std::vector<std::string> Keep() {
    std::vector<std::string> messages;
    for (const kube::Error& problem : child_objects_->Keep(job_).problems) {
      messages.push_back(problem.message);
    }
    return messages;
  }
  // Waits for the next report that an object of the job has changed.
  bool Changed() {
    std::unique_lock lock(mu_);
    const bool so = wake_.wait_for(lock, support::kPatience, [&] { return !changed_.empty(); });
    EXPECT_THAT(changed_, ElementsAre(ns_ + "/digits"));
    changed_.clear();
    return so;
  }
  Json Get(const kube::Resource& resource, const std::string& name) {
    const auto object = api_->Get(resource, ns_, name);
    return object ? *object : Json::object();
  }
  // Calls Keep until the caches show what it needs.
  bool KeepUntil(const std::function<bool()>& so) {
    const auto end = std::chrono::steady_clock::now() + support::kPatience;
    while (std::chrono::steady_clock::now() < end) {
      Keep();
      if (so()) return true;
      if (!Changed()) return false;
    }
    return false;
  }

  tls::KeyPair authority_;
  api::HorovodJob job_;
  std::mutex mu_;
  std::condition_variable wake_;
  std::set<std::string> changed_;
  std::unique_ptr<ChildObjects> child_objects_;
};

TEST_P(ChildObjectsTest, MakesAllOfThem) {
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_EQ(Get(kube::Services(), "digits-workers")["spec"]["clusterIP"], "None");
  EXPECT_EQ(Get(kube::PodDisruptionBudgets(), "digits-workers")["spec"]["minAvailable"], 2);
  EXPECT_TRUE(Get(kube::NetworkPolicies(), "digits-workers").contains("spec"));
  const Json secret = Get(kube::Secrets(), "digits-tls");
  EXPECT_EQ(WhyRenew(secret, job_, authority_.certificate_pem, std::chrono::system_clock::now()),
            "");
  // A second call changes nothing.
  const std::string version = secret["metadata"]["resourceVersion"];
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_EQ(Get(kube::Secrets(), "digits-tls")["metadata"]["resourceVersion"], version);
}

TEST_P(ChildObjectsTest, TheBudgetFollowsMinReplicas) {
  Keep();
  job_.spec.elastic_policy.min_replicas = 5;
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_EQ(Get(kube::PodDisruptionBudgets(), "digits-workers")["spec"]["minAvailable"], 5);
}

TEST_P(ChildObjectsTest, WhatIsDeletedComesBack) {
  Keep();
  const std::pair<kube::Resource, std::string> objects[] = {
      {kube::Services(), "digits-workers"},
      {kube::PodDisruptionBudgets(), "digits-workers"},
      {kube::NetworkPolicies(), "digits-workers"},
      {kube::Secrets(), "digits-tls"}};
  for (const auto& [resource, name] : objects) {
    ASSERT_TRUE(api_->Delete(resource, ns_, name, {}));
    EXPECT_TRUE(KeepUntil([&, resource = resource, name = name] {
      return Get(resource, name).contains("metadata");
    })) << resource.kind;
  }
}

TEST_P(ChildObjectsTest, WhatIsChangedIsMended) {
  Keep();
  ASSERT_TRUE(api_->Patch(kube::Services(), ns_, "digits-workers",
                          {{"spec", {{"publishNotReadyAddresses", false}}}}, {}));
  EXPECT_TRUE(KeepUntil([&] {
    return Get(kube::Services(), "digits-workers")["spec"]["publishNotReadyAddresses"] == true;
  }));
}

TEST_P(ChildObjectsTest, ACertificateOfAnotherAuthorityIsReplaced) {
  const auto other = *tls::MakeAuthority(std::chrono::system_clock::now(), std::chrono::hours(24));
  const auto pair = *tls::Issue(other, {tls::JobName(job_.uid)}, std::chrono::system_clock::now(),
                                std::chrono::hours(24));
  ASSERT_TRUE(
      api_->Create(kube::Secrets(), ns_, BuildTlsSecret(job_, other.certificate_pem, pair, "")));
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_EQ(WhyRenew(Get(kube::Secrets(), "digits-tls"), job_, authority_.certificate_pem,
                     std::chrono::system_clock::now()),
            "");
}

TEST_P(ChildObjectsTest, TheRingsKeyOutlivesCertificatesAndComesBackTheSame) {
  Keep();
  const auto key = [&] { return SecretValue(Get(kube::Secrets(), "digits-tls"), "ring.key"); };
  const std::string first = key();
  EXPECT_EQ(first.size(), 32u);
  ASSERT_TRUE(api_->Patch(kube::Secrets(), ns_, "digits-tls",
                          {{"data", {{"tls.crt", kube::EncodeBase64("spoiled")}}}}, {}));
  EXPECT_TRUE(KeepUntil([&] {
    return WhyRenew(Get(kube::Secrets(), "digits-tls"), job_, authority_.certificate_pem,
                    std::chrono::system_clock::now())
        .empty();
  }));
  EXPECT_EQ(key(), first) << "a new certificate";
  ASSERT_TRUE(api_->Delete(kube::Secrets(), ns_, "digits-tls", {}));
  EXPECT_TRUE(KeepUntil([&] { return !key().empty(); }));
  EXPECT_EQ(key(), first) << "a new Secret";
}

TEST_P(ChildObjectsTest, AJobThatBeganWithoutAKeyGetsNone) {
  const auto other = *tls::MakeAuthority(std::chrono::system_clock::now(), std::chrono::hours(24));
  const auto pair = *tls::Issue(other, {tls::JobName(job_.uid)}, std::chrono::system_clock::now(),
                                std::chrono::hours(24));
  ASSERT_TRUE(
      api_->Create(kube::Secrets(), ns_, BuildTlsSecret(job_, other.certificate_pem, pair, "")));
  EXPECT_THAT(Keep(), IsEmpty());
  const Json secret = Get(kube::Secrets(), "digits-tls");
  EXPECT_EQ(SecretValue(secret, "ca.crt"), authority_.certificate_pem);
  EXPECT_FALSE(secret["data"].contains("ring.key"));
}

TEST_P(ChildObjectsTest, WhatIsSomebodyElsesIsLeftAloneAndNamed) {
  ASSERT_TRUE(api_->Create(kube::Services(), ns_,
                           {{"apiVersion", "v1"},
                            {"kind", "Service"},
                            {"metadata", {{"name", "digits-workers"}}},
                            {"spec", {{"ports", {{{"port", 80}}}}}}}));
  ASSERT_TRUE(api_->Create(kube::Secrets(), ns_,
                           {{"apiVersion", "v1"},
                            {"kind", "Secret"},
                            {"metadata", {{"name", "digits-tls"}}},
                            {"data", {{"mine", kube::EncodeBase64("x")}}}}));
  EXPECT_THAT(Keep(), ElementsAre(HasSubstr("Secret digits-tls is not this job's"),
                                  HasSubstr("Service digits-workers is not this job's")));
  EXPECT_FALSE(child_objects_->HasSecret(job_));
  EXPECT_EQ(Get(kube::Secrets(), "digits-tls")["data"].size(), 1u);
  EXPECT_FALSE(Get(kube::Services(), "digits-workers")["spec"].contains("selector"));
}

TEST_P(ChildObjectsTest, WhatLooksLikeOursIsNotTakenOverEither) {
  ASSERT_TRUE(api_->Create(kube::Services(), ns_,
                           {{"apiVersion", "v1"},
                            {"kind", "Service"},
                            {"metadata",
                             {{"name", "digits-workers"},
                              {"labels",
                               {{api::kManagedByLabel, api::kManagedBy},
                                {"training.kubeflow.org/job-name", "digits"}}}}},
                            {"spec", {{"type", "ClusterIP"}, {"ports", {{{"port", 1}}}}}}}));
  ASSERT_TRUE(Changed()) << "the cache has it";
  EXPECT_THAT(Keep(), ElementsAre(HasSubstr("Service digits-workers is not this job's")));
  EXPECT_FALSE(Get(kube::Services(), "digits-workers")["spec"].contains("selector"));
}

TEST_P(ChildObjectsTest, WhatCanNotBeMadeIsSaid) {
  job_.ns = "nowhere";
  EXPECT_EQ(Keep().size(), 4u) << "Secret, Service, PodDisruptionBudget, NetworkPolicy";
}

TEST_P(ChildObjectsTest, WithoutNetworkPoliciesNoneIsMadeOrWatched) {
  ChildObjectOptions options;
  options.network_policy.enabled = false;
  ChildObjects child_objects(api_, options, [](const std::string&) {});
  EXPECT_EQ(child_objects.informers().size(), 2u);
  EXPECT_THAT(child_objects.Keep(job_).problems, IsEmpty());
  EXPECT_FALSE(Get(kube::NetworkPolicies(), "digits-workers").contains("spec"));
  EXPECT_FALSE(Get(kube::Secrets(), "digits-tls").contains("data")) << "nor a Secret without TLS";
}

// Records the calls ("get services"), and refuses what the test names. Any thread.
class AskedApi final : public kube::testing::WrappedApi {
 public:
  using WrappedApi::WrappedApi;

  void Fail(const std::string& call) {
    const std::lock_guard lock(mu_);
    fails_ = call;
  }
  std::vector<std::string> Asked() {
    const std::lock_guard lock(mu_);
    return std::exchange(asked_, {});
  }
  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    if (Fails("get " + resource.plural)) return Failure();
    return WrappedApi::Get(resource, ns, name);
  }
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    if (Fails("list " + resource.plural + " " + options.label_selector)) return Failure();
    return WrappedApi::ListAll(resource, ns, options);
  }
  kube::Result<Json> CreateWith(const kube::Resource& resource, const std::string& ns,
                                const Json& object, const kube::CreateOptions& options) override {
    if (Fails("create " + resource.plural)) return Failure();
    return WrappedApi::CreateWith(resource, ns, object, options);
  }
  kube::Result<Json> Patch(const kube::Resource& resource, const std::string& ns,
                           const std::string& name, const Json& patch,
                           const kube::PatchOptions& options) override {
    if (Fails("patch " + resource.plural)) return Failure();
    return WrappedApi::Patch(resource, ns, name, patch, options);
  }

 private:
  bool Fails(const std::string& call) {
    const std::lock_guard lock(mu_);
    asked_.push_back(call);
    return call == fails_;
  }
  static tl::unexpected<kube::Error> Failure() {
    return tl::unexpected(
        kube::Error{.code = kube::ErrorCode::kUnavailable, .message = "the test says no"});
  }
  std::mutex mu_;
  std::vector<std::string> asked_;  // guarded by mu_
  std::string fails_;               // guarded by mu_
};

// A ChildObjects whose caches have only what it has written itself.
class JobObjectCallsTest : public ChildObjectsTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ChildObjectsTest::SetUp());
    child_objects_->Stop();
    Begin();
  }
  // Starts anew, as an operator with empty caches.
  void Begin() {
    asked_ = std::make_shared<AskedApi>(api_);
    ChildObjectOptions options;
    options.authority = authority_;
    child_objects_ = std::make_unique<ChildObjects>(asked_, options, [](const std::string&) {});
  }
  std::vector<std::string> Asked() { return asked_->Asked(); }

  std::shared_ptr<AskedApi> asked_;
};

TEST_P(JobObjectCallsTest, WhatHasJustBeenWrittenIsNotWrittenAgain) {
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_THAT(Asked(), ElementsAre("get secrets", "create secrets", "create services",
                                   "create poddisruptionbudgets", "create networkpolicies"));
  EXPECT_THAT(Keep(), IsEmpty());
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_P(JobObjectCallsTest, TheSecretIsLookedAtNowAndThenAndForAnotherJobAtOnce) {
  EXPECT_EQ(child_objects_->Keep(job_).look_again, std::chrono::minutes(10));
  Asked();
  child_objects_->Forget(job_.uid);
  EXPECT_EQ(child_objects_->Keep(job_).look_again, std::chrono::minutes(10));
  EXPECT_THAT(Asked(), ElementsAre("get secrets"));
}

TEST_P(JobObjectCallsTest, WhatCantBeReadIsNotReplaced) {
  asked_->Fail("get secrets");
  EXPECT_THAT(Keep(), ElementsAre("the test says no"));
  EXPECT_THAT(Asked(), ElementsAre("get secrets", "create services", "create poddisruptionbudgets",
                                   "create networkpolicies"));
  ASSERT_TRUE(api_->Patch(kube::Services(), ns_, "digits-workers",
                          {{"metadata", {{"ownerReferences", nullptr}}}}, {}));
  Begin();
  asked_->Fail("get services");
  EXPECT_THAT(Keep(), ElementsAre(HasSubstr("already exists")));
  EXPECT_THAT(Asked(), Not(Contains("patch services"))) << "it may be anybody's";
}

TEST_P(JobObjectCallsTest, OnlyObjectsOfTheOperatorsAreWatched) {
  child_objects_->Start();
  for (runtime::Informer* informer : child_objects_->informers()) {
    ASSERT_TRUE(informer->WaitForSync(support::kPatience)) << informer->LastError();
  }
  const std::string ours = " app.kubernetes.io/managed-by=ringmaster";
  // A watch that ends is followed by another list.
  const std::vector<std::string> asked = Asked();
  EXPECT_THAT(std::set(asked.begin(), asked.end()),
              UnorderedElementsAre("list services" + ours, "list networkpolicies" + ours,
                                   "list poddisruptionbudgets" + ours));
}

TEST_P(JobObjectCallsTest, NobodyLooksForWhatCouldNotBeMadeForAnotherReason) {
  asked_->Fail("create services");
  EXPECT_THAT(Keep(), ElementsAre("the test says no"));
  EXPECT_THAT(Asked(), Not(Contains("get services")));
}

TEST_P(ChildObjectsTest, TheyGoWithTheJob) {
  Keep();
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), ns_, "digits", {}));
  EXPECT_TRUE(support::Until([&] {
    return !Get(kube::Services(), "digits-workers").contains("metadata") &&
           !Get(kube::Secrets(), "digits-tls").contains("metadata");
  }));
}

TEST_P(ChildObjectsTest, ASecondOperatorHasTheSameAuthority) {
  const auto again = LoadCertificateAuthority(api_.get(), ns_, std::chrono::system_clock::now());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->key_pem, authority_.key_pem);
}

// Another operator creates the Secret between our read and our write.
class RacingApi final : public kube::testing::WrappedApi {
 public:
  using WrappedApi::WrappedApi;
  kube::Result<Json> Create(const kube::Resource& resource, const std::string& ns,
                            const Json& object) override {
    if (!raced_ && resource.plural == "secrets") {
      raced_ = true;
      first = LoadCertificateAuthority(this, ns, std::chrono::system_clock::now())->key_pem;
    }
    return WrappedApi::Create(resource, ns, object);
  }
  std::string first;

 private:
  bool raced_ = false;
};

class AuthorityTest : public local::testing::OnEveryServer {};

TEST_P(AuthorityTest, WhoComesSecondTakesWhatIsThere) {
  RacingApi api(api_);
  const auto mine = LoadCertificateAuthority(&api, ns_, std::chrono::system_clock::now());
  ASSERT_TRUE(mine) << mine.error().message;
  EXPECT_NE(api.first, "");
  EXPECT_EQ(mine->key_pem, api.first);
}

TEST_P(AuthorityTest, ASecretThatCanNotBeUsedIsNamedWithTheWayOut) {
  ASSERT_TRUE(api_->Create(kube::Secrets(), ns_,
                           {{"apiVersion", "v1"},
                            {"kind", "Secret"},
                            {"metadata", {{"name", kAuthoritySecret}}},
                            {"data", {{"tls.crt", kube::EncodeBase64("nonsense")}}}}));
  const auto authority =
      LoadCertificateAuthority(api_.get(), ns_, std::chrono::system_clock::now());
  ASSERT_FALSE(authority);
  EXPECT_THAT(authority.error().message,
              HasSubstr("secret " + ns_ +
                        "/ringmaster-ca: tls.crt: no certificate in PEM form; delete it"));
  const auto now = std::chrono::system_clock::now();
  const auto write = [&](const std::string& certificate, const std::string& key) {
    return api_->Patch(
        kube::Secrets(), ns_, kAuthoritySecret,
        {{"data",
          {{"tls.crt", kube::EncodeBase64(certificate)}, {"tls.key", kube::EncodeBase64(key)}}}},
        {});
  };
  const auto old = *tls::MakeAuthority(now - std::chrono::hours(48), std::chrono::hours(24));
  const auto other = *tls::MakeAuthority(now, std::chrono::hours(24 * 365));
  ASSERT_TRUE(write(old.certificate_pem, old.key_pem));
  EXPECT_THAT(LoadCertificateAuthority(api_.get(), ns_, now).error().message,
              HasSubstr("has expired"));
  ASSERT_TRUE(write(other.certificate_pem, old.key_pem));
  EXPECT_THAT(LoadCertificateAuthority(api_.get(), ns_, now).error().message,
              HasSubstr("tls.key is not the key of tls.crt"));
  ASSERT_TRUE(write(other.certificate_pem, other.key_pem));
  EXPECT_TRUE(LoadCertificateAuthority(api_.get(), ns_, now));
  const auto nowhere =
      LoadCertificateAuthority(api_.get(), "nowhere", std::chrono::system_clock::now());
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("--operator-namespace"));
}

RM_ON_EVERY_SERVER(ChildObjectsTest);
RM_ON_EVERY_SERVER(JobObjectCallsTest);
RM_ON_EVERY_SERVER(AuthorityTest);

}  // namespace
}  // namespace ringmaster::controllers
