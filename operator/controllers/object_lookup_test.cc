#include "operator/controllers/object_lookup.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using std::chrono::hours;
using std::chrono::milliseconds;

// Counts what is read.
class CountingApi : public testing::RefusingApi {
 public:
  using RefusingApi::RefusingApi;
  int reads = 0;
  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    ++reads;
    return RefusingApi::Get(resource, ns, name);
  }
};

class ObjectLookupTest : public ::testing::Test {
 protected:
  ~ObjectLookupTest() override { store_->Close(); }
  void Make() {
    const auto made = api_->Create(kube::PriorityClasses(), "",
                                   {{"metadata", {{"name", "high"}}}, {"value", 10}});
    ASSERT_TRUE(made) << made.error().message;
  }

  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  const std::shared_ptr<CountingApi> api_ = std::make_shared<CountingApi>(store_);
};

TEST_F(ObjectLookupTest, WhatIsThereIsReadOnce) {
  Make();
  ObjectLookup lookup(api_, hours(1), hours(1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(lookup.Get(kube::PriorityClasses(), "high"));
  EXPECT_EQ(api_->reads, 1);
}

TEST_F(ObjectLookupTest, WhatIsNotThereIsNotAskedForAtEachLook) {
  ObjectLookup lookup(api_, hours(1), hours(1));
  for (int i = 0; i < 3; ++i) {
    const auto found = lookup.Get(kube::PriorityClasses(), "high");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, kube::ErrorCode::kNotFound);
  }
  EXPECT_EQ(api_->reads, 1);
}

TEST_F(ObjectLookupTest, AllAreReadOnceAndARefusalIsNotAskedForAtEachLook) {
  Make();
  ObjectLookup lookup(api_, hours(1), hours(1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(lookup.List(kube::PriorityClasses())->size(), 1u);
  EXPECT_EQ(api_->lists, 1);
  ObjectLookup refused(api_, hours(1), hours(1));
  api_->refused_verb = "list";
  for (int i = 0; i < 3; ++i) {
    const auto found = refused.List(kube::PriorityClasses());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, kube::ErrorCode::kForbidden);
  }
  EXPECT_EQ(api_->lists, 2);
}

TEST_F(ObjectLookupTest, WhatWasReadOnceCountsWhileItCantBeRead) {
  Make();
  ObjectLookup lookup(api_, milliseconds(0), hours(1));
  EXPECT_TRUE(lookup.List(kube::PriorityClasses()));
  api_->refused_verb = "list";
  EXPECT_EQ(lookup.List(kube::PriorityClasses())->size(), 1u);
}

TEST_F(ObjectLookupTest, WhatWasNotThereIsFoundWhenItIsMade) {
  ObjectLookup lookup(api_, hours(1), milliseconds(0));
  EXPECT_FALSE(lookup.Get(kube::PriorityClasses(), "high"));
  Make();
  EXPECT_TRUE(lookup.Get(kube::PriorityClasses(), "high"));
}

}  // namespace
}  // namespace ringmaster::controllers
