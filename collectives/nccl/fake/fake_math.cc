#include <algorithm>
#include <cstring>
#include <type_traits>

#include "collectives/element/element.h"
#include "collectives/nccl/fake/fake_state.h"

namespace ringmaster::nccl {
namespace {

rm_dtype TypeOf(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return RM_INT8;
    case DataType::kUint8:
      return RM_UINT8;
    case DataType::kInt32:
      return RM_INT32;
    case DataType::kUint32:
      return RM_UINT32;
    case DataType::kInt64:
      return RM_INT64;
    case DataType::kUint64:
      return RM_UINT64;
    case DataType::kFloat16:
      return RM_FLOAT16;
    case DataType::kFloat32:
      return RM_FLOAT32;
    case DataType::kFloat64:
      return RM_FLOAT64;
    case DataType::kBfloat16:
      return RM_BFLOAT16;
  }
  return RM_DTYPE_ANY_INT_;
}

template <typename T>
void Combine(T* sum, const T* more, size_t count, RedOp op) {
  for (size_t i = 0; i < count; ++i) {
    switch (op) {
      case kProd:
        sum[i] = static_cast<T>(sum[i] * more[i]);
        break;
      case kMax:
        sum[i] = std::max(sum[i], more[i]);
        break;
      case kMin:
        sum[i] = std::min(sum[i], more[i]);
        break;
      default:
        sum[i] = static_cast<T>(sum[i] + more[i]);
    }
  }
}

// As NCCL does it: an average is a sum of which each input is multiplied by 1/n first, and that is
// an element of the tensors' type, as is each product and each partial sum. `round` makes a value
// one where T has more digits.
template <typename T, typename Round>
void ReduceAs(const std::vector<const std::byte*>& inputs, size_t count, RedOp op, double factor,
              std::byte* out, const Round& round) {
  std::vector<T> sum(count), more(count), scale = {static_cast<T>(factor)};
  const bool multiplies = std::is_floating_point_v<T> && (op == kAvg || factor != 1);
  if (op == kAvg) scale[0] = static_cast<T>(1.0 / static_cast<double>(inputs.size()));
  round(&scale);
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    std::vector<T>& input = rank == 0 ? sum : more;
    std::memcpy(input.data(), inputs[rank], count * sizeof(T));
    if (multiplies) {
      for (T& value : input) value = static_cast<T>(value * scale[0]);
      round(&input);
    }
    if (rank == 0) continue;
    Combine(sum.data(), more.data(), count, op);
    round(&sum);
  }
  std::memcpy(out, sum.data(), count * sizeof(T));
}

template <typename T>
void ReduceAs(const std::vector<const std::byte*>& inputs, size_t count, RedOp op, double factor,
              std::byte* out) {
  ReduceAs<T>(inputs, count, op, factor, out, [](std::vector<T>*) {});
}

void ReduceHalves(const std::vector<const std::byte*>& inputs, size_t count, rm_dtype dtype,
                  RedOp op, double factor, std::byte* out) {
  std::vector<std::vector<std::byte>> wide;
  std::vector<const std::byte*> floats;
  for (const std::byte* input : inputs) {
    wide.emplace_back(count * sizeof(float));
    element::Widen(input, wide.back().data(), count, dtype, 1.0f);
  }
  for (const auto& values : wide) floats.push_back(values.data());
  std::vector<std::byte> result(count * sizeof(float));
  ReduceAs<float>(floats, count, op, factor, result.data(), [dtype](std::vector<float>* values) {
    std::vector<std::byte> halves(values->size() * element::Size(dtype));
    element::Narrow(values->data(), halves.data(), values->size(), dtype);
    element::Widen(halves.data(), values->data(), values->size(), dtype, 1.0f);
  });
  element::Narrow(result.data(), out, count, dtype);
}

void Reduce(const std::vector<const std::byte*>& inputs, size_t count, const FakeCall& call,
            std::byte* out) {
  switch (call.type) {
    case DataType::kInt8:
      return ReduceAs<int8_t>(inputs, count, call.op, call.factor, out);
    case DataType::kUint8:
      return ReduceAs<uint8_t>(inputs, count, call.op, call.factor, out);
    case DataType::kInt32:
      return ReduceAs<int32_t>(inputs, count, call.op, call.factor, out);
    case DataType::kUint32:
      return ReduceAs<uint32_t>(inputs, count, call.op, call.factor, out);
    case DataType::kInt64:
      return ReduceAs<int64_t>(inputs, count, call.op, call.factor, out);
    case DataType::kUint64:
      return ReduceAs<uint64_t>(inputs, count, call.op, call.factor, out);
    case DataType::kFloat32:
      return ReduceAs<float>(inputs, count, call.op, call.factor, out);
    case DataType::kFloat64:
      return ReduceAs<double>(inputs, count, call.op, call.factor, out);
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return ReduceHalves(inputs, count, TypeOf(call.type), call.op, call.factor, out);
  }
}

bool SameCall(const FakeCall& a, const FakeCall& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.op == b.op &&
         a.factor == b.factor && a.peer == b.peer;
}

// The sends and receives between two ranks are matched by their order.
std::optional<std::string> ReceiveFromPeer(const FakeLists& all, int rank, size_t at,
                                           std::vector<std::byte>* bytes) {
  const FakeCall& call = (*all[rank])[at];
  size_t before = 0;
  for (size_t i = 0; i < at; ++i) {
    const FakeCall& earlier = (*all[rank])[i];
    before += earlier.kind == CallKind::kRecv && earlier.peer == call.peer;
  }
  for (const FakeCall& sent : *all[call.peer]) {
    if (sent.kind != CallKind::kSend || sent.peer != rank || before-- > 0) continue;
    if (sent.count != call.count || sent.type != call.type) return "a receive and its send differ";
    *bytes = sent.input;
    return std::nullopt;
  }
  return "a receive without a send";
}

}  // namespace

size_t FakeSize(DataType type) { return element::Size(TypeOf(type)); }

std::optional<std::string> Receive(const FakeLists& all, int rank, size_t at,
                                   std::vector<std::byte>* bytes) {
  const FakeCall& call = (*all[rank])[at];
  if (call.kind == CallKind::kSend) return std::nullopt;
  if (call.kind == CallKind::kRecv) return ReceiveFromPeer(all, rank, at, bytes);
  std::vector<const std::byte*> inputs;
  const size_t size = call.count * FakeSize(call.type);
  for (const auto& list : all) {
    if (at >= list->size() || !SameCall((*list)[at], call)) return "the ranks' calls differ";
    const size_t skipped = call.kind == CallKind::kReduceScatter ? rank * size : 0;
    inputs.push_back((*list)[at].input.data() + skipped);
  }
  switch (call.kind) {
    case CallKind::kBroadcast:
      bytes->assign(inputs[call.peer], inputs[call.peer] + size);
      break;
    case CallKind::kAllGather:
      for (const std::byte* input : inputs) bytes->insert(bytes->end(), input, input + size);
      break;
    case CallKind::kReduce:
      if (call.peer != rank) break;
      [[fallthrough]];
    default:
      bytes->resize(size);
      Reduce(inputs, call.count, call, bytes->data());
  }
  return std::nullopt;
}

}  // namespace ringmaster::nccl
