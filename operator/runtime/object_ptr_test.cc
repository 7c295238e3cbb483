#include "operator/runtime/object_ptr.h"

#include <gtest/gtest.h>

namespace ringmaster::runtime {
namespace {

using kube::Json;

const Json kObject = Json::parse(
    R"({"metadata": {"name": "a", "labels": {}}, "spec": {"list": [1, -2, 2.5, true, null,
                    18446744073709551615, "\u00e9", ["b"]]}, "empty": []})");

ObjectPtr Plain(Json object) { return std::make_shared<const Json>(std::move(object)); }
ObjectPtr Pack(Json object) { return Plain(std::move(object)).Packed(); }

TEST(ObjectPtr, WhatIsPackedComesOutAsItWas) {
  EXPECT_EQ(*Pack(kObject), kObject);
  EXPECT_EQ(Pack(kObject)->at("metadata").at("name"), "a");
  EXPECT_EQ(*Pack(kObject).Packed(), kObject);
}

TEST(ObjectPtr, BytesThatAreNoTextArePackedToo) {
  const Json odd = {{"name", "\xff\xfe"}};
  EXPECT_EQ(*Pack(odd), odd);
}

TEST(ObjectPtr, CopiesMadeAfterALookShareTheTree) {
  const ObjectPtr looked = Pack(kObject);
  const ObjectPtr before = looked;
  const Json* const tree = &*looked;
  const ObjectPtr after = looked;
  EXPECT_EQ(&*after, tree);
  EXPECT_EQ(&*looked, tree) << "it is made once";
  EXPECT_NE(&*before, tree);
  EXPECT_NE(&*after.WithoutTree(), tree);
}

TEST(ObjectPtr, IdentityIsOfTheObjectAndNotOfItsContent) {
  const ObjectPtr one = Pack(kObject), copy = one, like = Pack(kObject);
  (void)*one;
  EXPECT_TRUE(one == copy && one == one.WithoutTree());
  EXPECT_FALSE(one == like || one == nullptr);
  EXPECT_TRUE(ObjectPtr() == nullptr && ObjectPtr(std::shared_ptr<const Json>()) == nullptr);
}

TEST(ObjectPtr, ContentIsComparedPackedAndUnpacked) {
  Json other = kObject;
  other["spec"]["list"][1] = 3;
  for (const ObjectPtr& one : {Plain(kObject), Pack(kObject)}) {
    for (const ObjectPtr& like : {Plain(kObject), Pack(kObject)}) EXPECT_TRUE(one.Equals(like));
    for (const ObjectPtr& not_like : {Plain(other), Pack(other)})
      EXPECT_FALSE(one.Equals(not_like));
    EXPECT_FALSE(one.Equals(nullptr) || ObjectPtr().Equals(one));
  }
}

TEST(ObjectPtr, TheExtractStaysWithTheObject) {
  ObjectPtr packed = Pack(kObject);
  EXPECT_EQ(packed.extract<std::string>(), nullptr);
  packed.SetExtract(std::make_shared<const std::string>("a"));
  const ObjectPtr copy = packed, plain = packed.WithoutTree();
  EXPECT_EQ(*copy.extract<std::string>(), "a");
  EXPECT_EQ(*plain.extract<std::string>(), "a");
  EXPECT_EQ(ObjectPtr().extract<std::string>(), nullptr);
}

}  // namespace
}  // namespace ringmaster::runtime
