// Averages of which the sum may overflow although the average doesn't: the sum is made in a wider
// type. For halves that is float. bf16 has the range of float, so each element is divided before it
// is added.
//
// Owner and thread: one call of a collective.
#pragma once

#include <cstddef>
#include <memory>

#include "ringmaster/status.h"

namespace ringmaster::communicator {

class WideAverage {
 public:
  // False: elements of this type can be reduced among `size` ranks as they are.
  static bool Needed(rm_dtype dtype, rm_op op, int size);

  WideAverage(rm_dtype dtype, int size);

  // Takes `count` elements, with room for `beside` more behind them. RM_ERR_OUT_OF_MEMORY.
  Status Take(const void* in, size_t count, size_t beside = 0);

  // What to reduce in place of the caller's elements, and how.
  std::byte* taken() { return wide_.get(); }
  std::byte* beside() { return beside_; }
  rm_dtype dtype() const { return wide_dtype_; }
  rm_op op() const { return divides_first_ ? RM_SUM : RM_AVERAGE; }

  // `count` elements of the result, from taken() or beside(), as the caller wants them.
  void Give(const std::byte* result, void* out, size_t count) const;

 private:
  const rm_dtype dtype_;
  const rm_dtype wide_dtype_;
  const bool divides_first_;
  const int size_;
  std::unique_ptr<std::byte[]> wide_;
  std::byte* beside_ = nullptr;
};

}  // namespace ringmaster::communicator
