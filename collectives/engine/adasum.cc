#include "collectives/engine/adasum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/element/element.h"

namespace ringmaster::engine {
namespace {

constexpr size_t kBlock = 1024;    // elements; as doubles they fit into the first-level cache
constexpr double kNothing = 1e-8;  // a vector whose squared length is below it has no direction

using Block = std::vector<double>;

// Reads `count` elements, at most kBlock, from index `at` on.
void Load(const void* data, size_t at, size_t count, rm_dtype dtype, double* out) {
  const auto* from = static_cast<const std::byte*>(data) + at * element::Size(dtype);
  if (dtype == RM_FLOAT64) {
    std::memcpy(out, from, count * sizeof(double));
    return;
  }
  float floats[kBlock];
  if (dtype == RM_FLOAT32) {
    std::memcpy(floats, from, count * sizeof(float));
  } else {
    element::Widen(from, floats, count, dtype, 1.0f);
  }
  std::copy_n(floats, count, out);
}

void Store(const double* from, size_t at, size_t count, rm_dtype dtype, void* data) {
  auto* to = static_cast<std::byte*>(data) + at * element::Size(dtype);
  if (dtype == RM_FLOAT64) {
    std::memcpy(to, from, count * sizeof(double));
    return;
  }
  float floats[kBlock];
  std::transform(from, from + count, floats,
                 [](double value) { return static_cast<float>(value); });
  if (dtype == RM_FLOAT32) {
    std::memcpy(to, floats, count * sizeof(float));
  } else {
    element::Narrow(floats, to, count, dtype);
  }
}

// The dot product of two weighted sums of the ranks' vectors, given by their weights.
double ProductOf(const std::vector<double>& a, const std::vector<double>& b,
                 std::span<const double> products) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; a[i] != 0 && j < b.size(); ++j) {
      if (b[j] != 0) sum += a[i] * b[j] * products[i * b.size() + j];
    }
  }
  return sum;
}

std::vector<double> Pair(const std::vector<double>& a, const std::vector<double>& b,
                         std::span<const double> products) {
  const double common = ProductOf(a, b, products);
  const auto factor = [&](const std::vector<double>& of) {
    const double square = ProductOf(of, of, products);
    return square < kNothing ? 1.0 : 1.0 - common / (2 * square);
  };
  const double of_a = factor(a), of_b = factor(b);
  std::vector<double> sum(a.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = of_a * a[i] + of_b * b[i];
  return sum;
}

}  // namespace

std::vector<double> AdasumProducts(std::span<const void* const> slices, size_t count,
                                   rm_dtype dtype) {
  const size_t n = slices.size();
  std::vector<double> products(n * n, 0);
  std::vector<Block> blocks(n, Block(kBlock));
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t length = std::min(kBlock, count - at);
    for (size_t i = 0; i < n; ++i) Load(slices[i], at, length, dtype, blocks[i].data());
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        double sum = 0;
        for (size_t k = 0; k < length; ++k) sum += blocks[i][k] * blocks[j][k];
        products[i * n + j] += sum;
        if (i != j) products[j * n + i] += sum;
      }
    }
  }
  return products;
}

std::vector<double> AdasumWeights(std::span<const double> products, size_t ranks) {
  std::vector<std::vector<double>> level;
  for (size_t rank = 0; rank < ranks; ++rank) {
    level.emplace_back(ranks, 0.0);
    level.back()[rank] = 1;
  }
  while (level.size() > 1) {
    std::vector<std::vector<double>> above;
    for (size_t i = 0; i < level.size(); i += 2) {
      above.push_back(i + 1 < level.size() ? Pair(level[i], level[i + 1], products)
                                           : std::move(level[i]));
    }
    level = std::move(above);
  }
  return std::move(level.front());
}

void AddWeighted(std::span<const void* const> slices, std::span<const double> weights, size_t count,
                 rm_dtype dtype, void* out) {
  Block block(kBlock), sum(kBlock);
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t length = std::min(kBlock, count - at);
    std::fill(sum.begin(), sum.end(), 0.0);
    for (size_t i = 0; i < slices.size(); ++i) {
      Load(slices[i], at, length, dtype, block.data());
      for (size_t k = 0; k < length; ++k) sum[k] += weights[i] * block[k];
    }
    Store(sum.data(), at, length, dtype, out);
  }
}

}  // namespace ringmaster::engine
