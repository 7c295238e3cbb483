// The loops of reduce.cc, compiled once for each instruction set: each .cc file defines RM_KERNELS
// as a namespace of its own and includes this. No template of the standard library may be used
// here: the linker keeps one copy of it, perhaps the one that was compiled for a newer processor.

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "collectives/algorithms/reduce_table.h"
#include "collectives/element/half.h"

// Sources and destination are the same buffer or don't overlap, so iterations are independent.
#if defined(__clang__)
#define RM_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define RM_LOOP _Pragma("GCC ivdep")
#endif

namespace ringmaster::algorithms::RM_KERNELS {
namespace {

// How many elements are kept in the first-level cache while many sources are added.
constexpr size_t kBlock = 1024;

template <typename T>
struct Unsigned {
  using type = T;
};
template <>
struct Unsigned<int8_t> {
  using type = uint8_t;
};
// Computed as int, which 16-bit types are promoted to, a product could overflow.
template <>
struct Unsigned<int16_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<uint16_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<int32_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<int64_t> {
  using type = uint64_t;
};

struct Sum {
  template <typename T>
  static T Do(T a, T b) {
    using U = typename Unsigned<T>::type;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
};
struct Product {
  template <typename T>
  static T Do(T a, T b) {
    using U = typename Unsigned<T>::type;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};
struct Min {
  template <typename T>
  static T Do(T a, T b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};
struct Max {
  template <typename T>
  static T Do(T a, T b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};

// The operations of bool, which is a byte: see Bool().
struct Any {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>((a | b) != 0);
  }
};
struct All {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>((a != 0) & (b != 0));
  }
};

// ---- plain types ----

template <typename T, typename Op>
void ReducePlain(void* dst_bytes, const void* const* src_bytes, int n, size_t count) {
  T* dst = static_cast<T*>(dst_bytes);
  auto src = [&](int k) { return static_cast<const T*>(src_bytes[k]); };
  const T* a = src(0);
  if (n == 1) {
    if (dst != a) std::memcpy(dst, a, count * sizeof(T));
    return;
  }
  const T* b = src(1);
  if (n == 2) {
    RM_LOOP
    for (size_t i = 0; i < count; ++i) dst[i] = Op::template Do<T>(a[i], b[i]);
    return;
  }
  const T* c = src(2);
  if (n == 3) {
    RM_LOOP
    for (size_t i = 0; i < count; ++i) {
      dst[i] = Op::template Do<T>(Op::template Do<T>(a[i], b[i]), c[i]);
    }
    return;
  }
  T block[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    size_t m = count - at < kBlock ? count - at : kBlock;
    const T *pa = a + at, *pb = b + at, *pc = c + at, *pd = src(3) + at;
    RM_LOOP
    for (size_t i = 0; i < m; ++i) {
      block[i] =
          Op::template Do<T>(Op::template Do<T>(Op::template Do<T>(pa[i], pb[i]), pc[i]), pd[i]);
    }
    int k = 4;
    for (; k + 1 < n; k += 2) {
      const T *pe = src(k) + at, *pf = src(k + 1) + at;
      RM_LOOP
      for (size_t i = 0; i < m; ++i) {
        block[i] = Op::template Do<T>(Op::template Do<T>(block[i], pe[i]), pf[i]);
      }
    }
    if (k < n) {
      const T* pe = src(k) + at;
      RM_LOOP
      for (size_t i = 0; i < m; ++i) block[i] = Op::template Do<T>(block[i], pe[i]);
    }
    std::memcpy(dst + at, block, m * sizeof(T));
  }
}

// ---- 16-bit floats: added up as float ----

struct BFloat16 {
  // It has the range of float, whose sum may be infinite although the average isn't.
  static constexpr bool kDividesFirst = true;
  static void Load(float* to, const uint16_t* from, size_t n) {
    RM_LOOP
    for (size_t i = 0; i < n; ++i) to[i] = element::BFloat16ToFloat(from[i]);
  }
  static void Store(uint16_t* to, const float* from, size_t n) {
    RM_LOOP
    for (size_t i = 0; i < n; ++i) to[i] = element::FloatToBFloat16(from[i]);
  }
};

struct Float16 {
  static constexpr bool kDividesFirst = false;
  static void Load(float* to, const uint16_t* from, size_t n) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
      __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
    }
#endif
    for (; i < n; ++i) to[i] = element::HalfToFloat(from[i]);
  }
  static void Store(uint16_t* to, const float* from, size_t n) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
      __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
    }
#endif
    for (; i < n; ++i) to[i] = element::FloatToHalf(from[i]);
  }
};

template <typename Format, typename Op>
void ReduceHalf(void* dst_bytes, const void* const* src_bytes, int n, size_t count) {
  uint16_t* dst = static_cast<uint16_t*>(dst_bytes);
  auto src = [&](int k) { return static_cast<const uint16_t*>(src_bytes[k]); };
  if (n == 1) {
    if (dst != src(0)) std::memcpy(dst, src(0), count * sizeof(uint16_t));
    return;
  }
  float sum[kBlock], next[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    size_t m = count - at < kBlock ? count - at : kBlock;
    Format::Load(sum, src(0) + at, m);
    for (int k = 1; k < n; ++k) {
      Format::Load(next, src(k) + at, m);
      RM_LOOP
      for (size_t i = 0; i < m; ++i) sum[i] = Op::template Do<float>(sum[i], next[i]);
    }
    Format::Store(dst + at, sum, m);
  }
}

template <typename Format>
void AverageHalf(void* dst_bytes, const void* const* src_bytes, int n, size_t count, int divisor) {
  uint16_t* dst = static_cast<uint16_t*>(dst_bytes);
  const float d = static_cast<float>(divisor), factor = Format::kDividesFirst ? 1.0f / d : 1.0f;
  float sum[kBlock], next[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    size_t m = count - at < kBlock ? count - at : kBlock;
    Format::Load(sum, static_cast<const uint16_t*>(src_bytes[0]) + at, m);
    RM_LOOP
    for (size_t i = 0; i < m; ++i) sum[i] *= factor;
    for (int k = 1; k < n; ++k) {
      Format::Load(next, static_cast<const uint16_t*>(src_bytes[k]) + at, m);
      RM_LOOP
      for (size_t i = 0; i < m; ++i) sum[i] += next[i] * factor;
    }
    if (!Format::kDividesFirst) {
      RM_LOOP
      for (size_t i = 0; i < m; ++i) sum[i] /= d;
    }
    Format::Store(dst + at, sum, m);
  }
}

// ---- division ----

template <typename T>
void DivideInteger(void* data_bytes, size_t count, int divisor) {
  T* data = static_cast<T*>(data_bytes);
  const int64_t d = divisor;
  for (size_t i = 0; i < count; ++i) {
    int64_t value = data[i];
    int64_t quotient = value / d;
    data[i] = static_cast<T>(quotient - (value % d < 0));
  }
}

template <typename T>
void DivideUnsigned(void* data_bytes, size_t count, int divisor) {
  T* data = static_cast<T*>(data_bytes);
  const auto d = static_cast<T>(divisor);
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<T>(data[i] / d);
}

// A bool has no average.
void DivideNothing(void*, size_t, int) {}

template <typename T>
void DivideFloat(void* data_bytes, size_t count, int divisor) {
  T* data = static_cast<T*>(data_bytes);
  const T d = static_cast<T>(divisor);
  RM_LOOP
  for (size_t i = 0; i < count; ++i) data[i] /= d;
}

template <typename Format>
void DivideHalf(void* data_bytes, size_t count, int divisor) {
  uint16_t* data = static_cast<uint16_t*>(data_bytes);
  const float d = static_cast<float>(divisor);
  float block[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    size_t m = count - at < kBlock ? count - at : kBlock;
    Format::Load(block, data + at, m);
    RM_LOOP
    for (size_t i = 0; i < m; ++i) block[i] /= d;
    Format::Store(data + at, block, m);
  }
}

template <typename T>
constexpr TypeKernels Plain(DivideFn divide) {
  return {{ReducePlain<T, Sum>, ReducePlain<T, Min>, ReducePlain<T, Max>, ReducePlain<T, Product>},
          divide,
          nullptr};
}

constexpr TypeKernels Bool() {
  return {{ReducePlain<uint8_t, Any>, ReducePlain<uint8_t, All>, ReducePlain<uint8_t, Any>,
           ReducePlain<uint8_t, All>},
          DivideNothing,
          nullptr};
}

template <typename Format>
constexpr TypeKernels Half() {
  return {{ReduceHalf<Format, Sum>, ReduceHalf<Format, Min>, ReduceHalf<Format, Max>,
           ReduceHalf<Format, Product>},
          DivideHalf<Format>,
          AverageHalf<Format>};
}

}  // namespace

// In the order of rm_dtype.
extern const KernelTable kTable;
const KernelTable kTable = {{
    Plain<uint8_t>(DivideUnsigned<uint8_t>),
    Plain<int8_t>(DivideInteger<int8_t>),
    Plain<int32_t>(DivideInteger<int32_t>),
    Plain<int64_t>(DivideInteger<int64_t>),
    Half<Float16>(),
    Half<BFloat16>(),
    Plain<float>(DivideFloat<float>),
    Plain<double>(DivideFloat<double>),
    Bool(),
    Plain<uint16_t>(DivideUnsigned<uint16_t>),
    Plain<int16_t>(DivideInteger<int16_t>),
    Plain<uint32_t>(DivideUnsigned<uint32_t>),
    Plain<uint64_t>(DivideUnsigned<uint64_t>),
}};

}  // namespace ringmaster::algorithms::RM_KERNELS
