#include "common/fnv/fnv.h"

#include <gtest/gtest.h>

namespace ringmaster::fnv {
namespace {

// The published test vectors.
TEST(FnvTest, IsFnv1a) {
  EXPECT_EQ(Hash().value(), 0xCBF29CE484222325U);
  EXPECT_EQ(Hash().Bytes("a").value(), 0xAF63DC4C8601EC8CU);
  EXPECT_EQ(Hash().Bytes("foobar").value(), 0x85944171F73967E8U);
}

TEST(FnvTest, ANumberIsItsBytesAndATextHasItsLength) {
  EXPECT_EQ(Hash().Number(0x0201).value(),
            Hash().Bytes(std::string_view("\1\2\0\0\0\0\0\0", 8)).value());
  EXPECT_NE(Hash().Text("ab").Text("c").value(), Hash().Text("a").Text("bc").value());
}

}  // namespace
}  // namespace ringmaster::fnv
