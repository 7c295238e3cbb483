#include "collectives/engine/pieces.h"

#include <gtest/gtest.h>

#include "collectives/engine/request.h"

namespace ringmaster::engine {
namespace {

TEST(PiecesTest, ShapesAndCountsAreReadFromTheText) {
  EXPECT_TRUE(ShapesOfPieces("").empty());
  EXPECT_EQ(ShapesOfPieces("[2, 3][0][17]"), (std::vector<std::string>{"[2, 3]", "[0]", "[17]"}));
  EXPECT_EQ(CountsOfPieces("[2, 3, 4][0][17]"), (std::vector<uint64_t>{24, 0, 17}));
}

// What a rank with a defect has sent may not end this one.
TEST(PiecesTest, TextThatIsNoShapeIsReadToItsEnd) {
  EXPECT_EQ(ShapesOfPieces("[2").size(), 1u);
  EXPECT_EQ(CountsOfPieces("x]]").size(), 2u);
}

TEST(PiecesTest, WhatIsPackedAndUnpackedComesToItsPlaceScaled) {
  const std::vector<int32_t> a{1, 2}, b{}, c{3};
  std::vector<int32_t> to_a(2), to_c(1), packed(3);
  const Pieces pieces = {
      {a.data(), to_a.data(), 2}, {b.data(), nullptr, 0}, {c.data(), to_c.data(), 1}};
  auto* bytes = reinterpret_cast<std::byte*>(packed.data());
  Pack(pieces, bytes, RM_INT32, 10);
  EXPECT_EQ(packed, (std::vector<int32_t>{10, 20, 30}));
  Unpack(bytes, pieces, RM_INT32, 2);
  EXPECT_EQ(to_a, (std::vector<int32_t>{20, 40}));
  EXPECT_EQ(to_c, std::vector<int32_t>{60});
}

TEST(PiecesTest, ARequestOfPiecesArrivesAsItWasAndHasTheFieldsOfAnEarlierLibrary) {
  Request request{"group", Kind::kAllreduce, RM_FLOAT16, RM_AVERAGE, "", 10, 0.5, 2};
  request.pieces = "[2, 3][4]";
  ByteWriter out;
  Write(&out, request);
  ByteReader in(out.bytes());
  EXPECT_EQ(ReadRequest(&in), request);
  EXPECT_TRUE(in.ok() && in.at_end());

  // An earlier library reads a list of members here.
  Request with_member = request;
  with_member.kind = Kind::kAddSet;
  with_member.pieces.clear();
  with_member.members = {"[2, 3][4]"};
  ByteWriter earlier;
  Write(&earlier, with_member);
  EXPECT_EQ(earlier.bytes().size(), out.bytes().size());
}

}  // namespace
}  // namespace ringmaster::engine
