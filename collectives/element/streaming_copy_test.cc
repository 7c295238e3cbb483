#include "collectives/element/streaming_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ringmaster::element {
namespace {

TEST(StreamingCopyTest, AtEachPlaceAndOfEachLengthItCopiesThatAndNothingElse) {
  constexpr size_t kRoom = 512;
  constexpr auto kUntouched = std::byte{0xee};
  std::vector<std::byte> source(kRoom);
  for (size_t i = 0; i < kRoom; ++i) source[i] = std::byte(i % 251);
  for (size_t at = 0; at < 65; ++at) {
    for (size_t from = 0; from < 17; ++from) {
      for (size_t bytes = 0; bytes < 260; ++bytes) {
        std::vector<std::byte> target(kRoom, kUntouched), expected = target;
        std::copy_n(source.begin() + from, bytes, expected.begin() + at);
        StreamingCopy(target.data() + at, source.data() + from, bytes);
        ASSERT_EQ(target, expected) << bytes << " bytes from " << from << " to " << at;
      }
    }
  }
}

TEST(StreamingCopyTest, OfNothingNothingIsTouched) { StreamingCopy(nullptr, nullptr, 0); }

}  // namespace
}  // namespace ringmaster::element
