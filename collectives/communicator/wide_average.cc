#include "collectives/communicator/wide_average.h"

#include <new>

#include "collectives/element/element.h"

namespace ringmaster::communicator {

bool WideAverage::Needed(rm_dtype dtype, rm_op op, int size) {
  return op == RM_AVERAGE && size > 1 && element::SumType(dtype) != dtype;
}

WideAverage::WideAverage(rm_dtype dtype, int size)
    : dtype_(dtype),
      wide_dtype_(element::SumType(dtype)),
      divides_first_(dtype == RM_BFLOAT16),
      size_(size) {}

Status WideAverage::Take(const void* in, size_t count, size_t beside) {
  const size_t element_bytes = element::Size(wide_dtype_);
  wide_.reset(new (std::nothrow) std::byte[(count + beside) * element_bytes + 1]);
  if (wide_ == nullptr) return Status(RM_ERR_OUT_OF_MEMORY, "no memory for an average");
  beside_ = wide_.get() + count * element_bytes;
  element::Widen(in, wide_.get(), count, dtype_,
                 divides_first_ ? 1.0f / static_cast<float>(size_) : 1.0f);
  return Status();
}

void WideAverage::Give(const std::byte* result, void* out, size_t count) const {
  element::Narrow(result, out, count, dtype_);
}

}  // namespace ringmaster::communicator
