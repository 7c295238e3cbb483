// Elements of any type, as doubles: what tests put into buffers and expect in results.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ringmaster/communicator.h"

namespace ringmaster {

inline size_t Bytes(rm_dtype dtype) {
  static constexpr size_t kBytes[] = {1, 1, 4, 8, 2, 2, 4, 8, 1, 2, 2, 4, 8};
  return kBytes[dtype];
}

inline uint16_t ToHalf(double value) {  // exact for the small integers used here
  if (value == 0) return 0;
  int exponent;
  double fraction = std::frexp(std::fabs(value), &exponent);
  int mantissa = static_cast<int>(fraction * 2048) - 1024;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | mantissa);
}

inline double FromHalf(uint16_t half) {
  int exponent = half >> 10 & 31;
  double mantissa = half & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  return half & 0x8000 ? -value : value;
}

inline void Put(std::byte* at, rm_dtype dtype, size_t i, double value) {
  auto store = [&](auto typed) { std::memcpy(at + i * sizeof(typed), &typed, sizeof(typed)); };
  switch (dtype) {
    case RM_DTYPE_ANY_INT_:
      break;
    case RM_UINT8:
      return store(static_cast<uint8_t>(static_cast<int64_t>(value)));
    case RM_INT8:
      return store(static_cast<int8_t>(static_cast<int64_t>(value)));
    case RM_INT32:
      return store(static_cast<int32_t>(value));
    case RM_INT64:
      return store(static_cast<int64_t>(value));
    case RM_FLOAT16:
      return store(ToHalf(value));
    case RM_BFLOAT16: {
      float as_float = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &as_float, 4);
      return store(static_cast<uint16_t>(bits >> 16));
    }
    case RM_FLOAT32:
      return store(static_cast<float>(value));
    case RM_FLOAT64:
      return store(value);
    case RM_BOOL:
      return store(static_cast<uint8_t>(value != 0));
    case RM_UINT16:
      return store(static_cast<uint16_t>(value));
    case RM_INT16:
      return store(static_cast<int16_t>(value));
    case RM_UINT32:
      return store(static_cast<uint32_t>(value));
    case RM_UINT64:
      return store(static_cast<uint64_t>(value));
  }
}

inline double Get(const std::byte* at, rm_dtype dtype, size_t i) {
  auto load = [&](auto typed) {
    std::memcpy(&typed, at + i * sizeof(typed), sizeof(typed));
    return typed;
  };
  switch (dtype) {
    case RM_DTYPE_ANY_INT_:
      break;
    case RM_UINT8:
      return load(uint8_t{});
    case RM_INT8:
      return load(int8_t{});
    case RM_INT32:
      return load(int32_t{});
    case RM_INT64:
      return static_cast<double>(load(int64_t{}));
    case RM_FLOAT16:
      return FromHalf(load(uint16_t{}));
    case RM_BFLOAT16: {
      uint32_t bits = static_cast<uint32_t>(load(uint16_t{})) << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    case RM_FLOAT32:
      return load(float{});
    case RM_FLOAT64:
      return load(double{});
    case RM_BOOL:
      return load(uint8_t{});
    case RM_UINT16:
      return load(uint16_t{});
    case RM_INT16:
      return load(int16_t{});
    case RM_UINT32:
      return load(uint32_t{});
    case RM_UINT64:
      return static_cast<double>(load(uint64_t{}));
  }
  return 0;
}

inline bool IsInteger(rm_dtype dtype) { return dtype <= RM_INT64 || dtype >= RM_UINT16; }

// ValueOf and Expected repeat after so many elements. The tests look at hundreds of millions.
constexpr size_t kPeriod = 33;

inline double ValueOf(rm_op op, int rank, size_t i) {
  if (op == RM_PRODUCT) return (static_cast<size_t>(rank) + i) % 3 == 0 ? 2 : 1;
  return static_cast<double>((static_cast<size_t>(rank) * 7 + i * 3) % 11) + 1;
}

inline double Expected(rm_op op, rm_dtype dtype, int ranks, size_t i) {
  double result = ValueOf(op, 0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    double value = ValueOf(op, rank, i);
    if (op == RM_SUM || op == RM_AVERAGE) result += value;
    if (op == RM_MIN) result = std::min(result, value);
    if (op == RM_MAX) result = std::max(result, value);
    if (op == RM_PRODUCT) result *= value;
  }
  if (op != RM_AVERAGE) return result;
  return IsInteger(dtype) ? std::floor(result / ranks) : result / ranks;
}

inline std::vector<std::byte> InputOf(rm_op op, rm_dtype dtype, int rank, size_t count) {
  std::vector<std::byte> data(count * Bytes(dtype) + 1);  // never empty: data() is not null
  const size_t first = std::min(count, kPeriod);
  for (size_t i = 0; i < first; ++i) Put(data.data(), dtype, i, ValueOf(op, rank, i));
  for (size_t done = first; done < count;) {
    const size_t more = std::min(done, count - done);  // whole periods, until the last
    std::memcpy(data.data() + done * Bytes(dtype), data.data(), more * Bytes(dtype));
    done += more;
  }
  return data;
}

// The first wrong element as a sentence, empty if there is none.
inline std::string Differs(const std::byte* data, rm_op op, rm_dtype dtype, int ranks,
                           size_t count) {
  double tolerance = op != RM_AVERAGE || IsInteger(dtype) ? 0 : dtype == RM_BFLOAT16 ? 1e-2 : 1e-3;
  double period[kPeriod];
  for (size_t i = 0; i < kPeriod; ++i) period[i] = Expected(op, dtype, ranks, i);
  for (size_t i = 0; i < count; ++i) {
    double expected = period[i % kPeriod];
    double actual = Get(data, dtype, i);
    if (std::fabs(actual - expected) > tolerance * std::fabs(expected)) {
      return "element " + std::to_string(i) + " of " + std::to_string(count) + " is " +
             std::to_string(actual) + ", expected " + std::to_string(expected) + " (dtype " +
             std::to_string(dtype) + ", op " + std::to_string(op) + ")";
    }
  }
  return "";
}

inline void ExpectAllreduce(Communicator& communicator, int rank, rm_op op, rm_dtype dtype,
                            size_t count, bool in_place) {
  std::vector<std::byte> in = InputOf(op, dtype, rank, count);
  std::vector<std::byte> out = in_place ? in : std::vector<std::byte>(in.size());
  std::vector<std::byte> before = in;
  const void* source = in_place ? out.data() : in.data();
  Status status = communicator.Allreduce(source, out.data(), count, dtype, op);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(Differs(out.data(), op, dtype, communicator.size(), count), "") << "rank " << rank;
  EXPECT_EQ(in, before) << "the input was changed";
}

constexpr rm_dtype kTypes[] = {RM_UINT8,   RM_INT8,    RM_INT32,  RM_INT64, RM_FLOAT16, RM_BFLOAT16,
                               RM_FLOAT32, RM_FLOAT64, RM_UINT16, RM_INT16, RM_UINT32,  RM_UINT64};
constexpr rm_op kOps[] = {RM_SUM, RM_AVERAGE, RM_MIN, RM_MAX, RM_PRODUCT};

// ---- every world ----

}  // namespace ringmaster
