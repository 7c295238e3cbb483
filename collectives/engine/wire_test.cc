#include "collectives/engine/wire.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

// A rank with another version of the library may send such a code, and a broken rank may send any.
TEST(WireTest, AStatusCodeThatNobodyKnowsIsADefectElsewhere) {
  for (const std::uint32_t code : {14U, 0xff00U, 0xffffffffU}) {
    ByteWriter out;
    out.Put(code);
    ByteReader in(out.bytes());
    EXPECT_EQ(ReadStatusCode(&in), RM_ERR_INTERNAL) << code;
    EXPECT_TRUE(in.ok());
  }
}

TEST(WireTest, KnownStatusCodesArriveAsTheyWere) {
  ByteWriter out;
  out.Put(static_cast<std::uint32_t>(RM_OK));
  out.Put(static_cast<std::uint32_t>(RM_ERR_FORKED));
  ByteReader in(out.bytes());
  EXPECT_EQ(ReadStatusCode(&in), RM_OK);
  EXPECT_EQ(ReadStatusCode(&in), RM_ERR_FORKED);
}

}  // namespace
}  // namespace ringmaster::engine
