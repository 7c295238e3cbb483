// Makes averages whose sum may overflow although the average doesn't: the sum is made in a wider
// type, which for halves is float. bf16 has the range of float, so there each element is divided
// before it is added. Where all ranks share memory halves don't need it (algorithms/reduce.h).
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

  // Converts `count` elements to the wider type and leaves room for `beside` more behind them.
  // RM_ERR_OUT_OF_MEMORY if there is no memory for it.
  Status Take(const void* in, size_t count, size_t beside = 0);

  // What to reduce in place of the caller's elements, and how.
  std::byte* taken() { return wide_.get(); }
  std::byte* beside() { return beside_; }
  rm_dtype dtype() const { return wide_dtype_; }
  rm_op op() const { return divides_first_ ? RM_SUM : RM_AVERAGE; }

  // Converts `count` elements of the result, which lie at taken() or beside(), to the caller's
  // type.
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
