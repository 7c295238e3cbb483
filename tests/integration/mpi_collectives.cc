// One rank of a job that mpirun or mpiexec has started: every collective of every type and
// reduction through the C ABI, compared with plain loops. Prints "rank R of N: K results are
// right", or the first that is wrong and ends with 1.
//
// usage: mpi_collectives BY-MPI    BY-MPI: what rm_mpi_enabled() has to be, 0 or 2
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "collectives/element/element.h"
#include "ringmaster/ringmaster.h"

namespace {

namespace element = ringmaster::element;

constexpr rm_op kOps[] = {RM_SUM, RM_AVERAGE, RM_MIN, RM_MAX, RM_PRODUCT};
constexpr double kSeconds = 60;

int results = 0;

[[noreturn]] void Fail(const std::string& what) {
  std::printf("rank %d: %s\n", rm_rank(), what.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

void Expect(bool right, const std::string& what) {
  if (!right) Fail(what + " is wrong");
  ++results;
}

void Check(rm_status status, const std::string& what) {
  if (status != RM_OK) Fail(what + ": " + rm_last_error());
}

template <typename T>
T As(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

double Get(const void* at, rm_dtype dtype) {
  float wide = 0;
  switch (dtype) {
    case RM_FLOAT16:
    case RM_BFLOAT16:
      element::Widen(at, &wide, 1, dtype, 1.0f);
      return wide;
    case RM_FLOAT32:
      return As<float>(at);
    case RM_FLOAT64:
      return As<double>(at);
    case RM_INT8:
      return As<int8_t>(at);
    case RM_INT16:
      return As<int16_t>(at);
    case RM_INT32:
      return As<int32_t>(at);
    case RM_INT64:
      return static_cast<double>(As<int64_t>(at));
    case RM_UINT16:
      return As<uint16_t>(at);
    case RM_UINT32:
      return As<uint32_t>(at);
    case RM_UINT64:
      return static_cast<double>(As<uint64_t>(at));
    default:
      return As<uint8_t>(at);
  }
}

void Put(void* at, rm_dtype dtype, double value) {
  element::FillIdentity(at, 1, dtype, RM_PRODUCT);
  if (dtype == RM_BOOL) {
    *static_cast<uint8_t*>(at) = value != 0;
  } else {
    element::CopyScaled(at, at, 1, dtype, value);
  }
}

// What rank `rank` gives at this index. The numbers are so small that all results are exact.
double Given(size_t index, int rank, rm_dtype dtype) {
  if (dtype == RM_BOOL) return (index + static_cast<size_t>(rank)) % 3 == 0 ? 0 : 1;
  return static_cast<double>((index * 7 + static_cast<size_t>(rank)) % 3 + 1);
}

double Expected(size_t index, rm_dtype dtype, rm_op op) {
  double result = Given(index, 0, dtype);
  for (int rank = 1; rank < rm_size(); ++rank) {
    const double next = Given(index, rank, dtype);
    if (op == RM_SUM || op == RM_AVERAGE) result += next;
    if (op == RM_PRODUCT) result *= next;
    if (op == RM_MIN) result = std::min(result, next);
    if (op == RM_MAX) result = std::max(result, next);
  }
  if (dtype == RM_BOOL) return result != 0;
  if (op != RM_AVERAGE) return result;
  result /= rm_size();
  return dtype == RM_FLOAT16 || dtype == RM_BFLOAT16 || dtype == RM_FLOAT32 || dtype == RM_FLOAT64
             ? result
             : std::floor(result);
}

bool Close(double a, double b, rm_dtype dtype) {
  const double exact = dtype == RM_BFLOAT16 ? 1.0 / 128 : dtype == RM_FLOAT16 ? 1.0 / 1024 : 1e-6;
  return std::abs(a - b) <= exact * std::abs(b);
}

std::vector<char> Input(size_t count, rm_dtype dtype) {
  const size_t size = rm_dtype_size(dtype);
  std::vector<char> in(count * size);
  for (size_t i = 0; i < count; ++i) Put(&in[i * size], dtype, Given(i, rm_rank(), dtype));
  return in;
}

void Reduce(rm_dtype dtype, rm_op op, size_t count) {
  const size_t size = rm_dtype_size(dtype);
  const std::string what = std::string("allreduce of ") + std::to_string(count) + " " +
                           element::Name(dtype) + " by " + element::OpName(op);
  const std::vector<char> in = Input(count, dtype);
  std::vector<char> out(in.size());
  rm_handle handle = 0;
  Check(rm_allreduce_async(what.c_str(), in.data(), out.data(), count, dtype, op, 1, 1, &handle),
        what);
  Check(rm_wait(handle, kSeconds), what);
  rm_release(handle);
  for (size_t i = 0; i < count; ++i) {
    const double got = Get(&out[i * size], dtype), wanted = Expected(i, dtype, op);
    if (!Close(got, wanted, dtype)) {
      Fail(what + ": element " + std::to_string(i) + " is " + std::to_string(got) + " and not " +
           std::to_string(wanted));
    }
  }
  ++results;
}

void Scatter(rm_dtype dtype, rm_op op, size_t rows) {
  const size_t size = rm_dtype_size(dtype), shape[] = {rows, 3};
  const std::string what = std::string("reducescatter of ") + std::to_string(rows) + " rows of " +
                           element::Name(dtype) + " by " + element::OpName(op);
  const std::vector<char> in = Input(rows * 3, dtype);
  rm_request request = rm_request_of(RM_REDUCESCATTER, what.c_str());
  request.in = in.data();
  request.shape = shape;
  request.dimensions = 2;
  request.dtype = dtype;
  request.op = op;
  rm_handle handle = 0;
  Check(rm_submit(&request, 1, &handle), what);
  Check(rm_wait(handle, kSeconds), what);
  const void* data = nullptr;
  const size_t* by_rank = nullptr;
  size_t got = 0, ranks = 0, before = 0;
  Check(rm_result(handle, &data, &got, &by_rank, &ranks), what);
  for (int rank = 0; rank < rm_rank(); ++rank) before += by_rank[rank];
  for (size_t i = 0; i < got * 3; ++i) {
    const double value = Get(static_cast<const char*>(data) + i * size, dtype);
    if (!Close(value, Expected(before * 3 + i, dtype, op), dtype))
      Fail(what + ": element " + std::to_string(i) + " is " + std::to_string(value));
  }
  rm_release(handle);
  ++results;
}

// Every element is `given` on every rank. Many elements, because an MPI may add whole vectors of
// small integers otherwise than single ones.
template <typename T>
void SumWraps(rm_dtype dtype, T given) {
  constexpr size_t kCount = 1000;
  const auto ranks = static_cast<uint64_t>(rm_size());
  const std::vector<T> in(kCount, given), wanted(kCount, static_cast<T>(given * ranks));
  std::vector<T> out(kCount);
  const std::string what =
      std::string("a sum that wraps, of ") + element::Name(dtype) + " " + std::to_string(given);
  rm_handle handle = 0;
  Check(
      rm_allreduce_async(what.c_str(), in.data(), out.data(), kCount, dtype, RM_SUM, 1, 1, &handle),
      what);
  Check(rm_wait(handle, kSeconds), what);
  rm_release(handle);
  Expect(out == wanted, what);

  const std::string part = "reducescatter: " + what;
  rm_request request = rm_request_of(RM_REDUCESCATTER, part.c_str());
  const size_t shape[] = {kCount};
  request.in = in.data();
  request.shape = shape;
  request.dimensions = 1;
  request.dtype = dtype;
  request.op = RM_SUM;
  Check(rm_submit(&request, 1, &handle), part);
  Check(rm_wait(handle, kSeconds), part);
  const void* data = nullptr;
  size_t rows = 0;
  Check(rm_result(handle, &data, &rows, nullptr, nullptr), part);
  const T* got = static_cast<const T*>(data);
  Expect(std::equal(got, got + rows, wanted.begin()), part);
  rm_release(handle);
}

template <typename T>
void SumsWrap(rm_dtype dtype) {
  SumWraps<T>(dtype, static_cast<T>(-2));
  SumWraps<T>(dtype, std::numeric_limits<T>::max());
}

// A NaN of any rank wins in a minimum and a maximum, and sums of integers wrap.
void TellsWhatIsSpecial() {
  for (rm_dtype dtype : {RM_FLOAT16, RM_BFLOAT16, RM_FLOAT32, RM_FLOAT64}) {
    for (rm_op op : {RM_MIN, RM_MAX}) {
      for (int who = 0; who < rm_size(); ++who) {
        char in[8], out[8];
        Put(in, dtype, rm_rank() == who ? NAN : 1.0);
        const std::string what = std::string(element::Name(dtype)) + " with a NaN on rank " +
                                 std::to_string(who) + " by " + element::OpName(op);
        rm_handle handle = 0;
        Check(rm_allreduce_async(what.c_str(), in, out, 1, dtype, op, 1, 1, &handle), what);
        Check(rm_wait(handle, kSeconds), what);
        rm_release(handle);
        Expect(std::isnan(Get(out, dtype)), what);
      }
    }
  }
  SumsWrap<int8_t>(RM_INT8);
  SumsWrap<uint8_t>(RM_UINT8);
  SumsWrap<int16_t>(RM_INT16);
  SumsWrap<uint16_t>(RM_UINT16);
  SumsWrap<int32_t>(RM_INT32);
  SumsWrap<uint32_t>(RM_UINT32);
  SumsWrap<int64_t>(RM_INT64);
  SumsWrap<uint64_t>(RM_UINT64);
}

void Gather(size_t scale) {
  const size_t mine = static_cast<size_t>(rm_rank()) * scale;  // rank 0 gives nothing
  std::vector<uint32_t> in(mine * 2, static_cast<uint32_t>(rm_rank()));
  const std::string what = "allgather of " + std::to_string(scale);
  rm_handle handle = 0;
  Check(rm_allgather_async(what.c_str(), in.data(), mine, 2, RM_UINT32, &handle), what);
  Check(rm_wait(handle, kSeconds), what);
  const void* data = nullptr;
  size_t rows = 0, at = 0;
  Check(rm_result(handle, &data, &rows, nullptr, nullptr), what);
  const auto* got = static_cast<const uint32_t*>(data);
  for (int rank = 0; rank < rm_size(); ++rank) {
    for (size_t i = 0; i < static_cast<size_t>(rank) * scale * 2; ++i, ++at) {
      if (got[at] != static_cast<uint32_t>(rank)) Fail(what + ": element " + std::to_string(at));
    }
  }
  Expect(at == rows * 2, what + " rows");
  rm_release(handle);
}

// Rank r sends (r + k + 1) * scale rows to rank k.
void Exchange(size_t scale) {
  const size_t size = static_cast<size_t>(rm_size()), self = static_cast<size_t>(rm_rank());
  std::vector<size_t> splits;
  std::vector<uint64_t> in;
  for (size_t k = 0; k < size; ++k) {
    splits.push_back((self + k + 1) * scale);
    in.insert(in.end(), splits.back(), self * 100 + k);
  }
  const size_t shape[] = {in.size()};
  const std::string what = "alltoall of " + std::to_string(scale);
  rm_request request = rm_request_of(RM_ALLTOALL, what.c_str());
  request.in = in.data();
  request.shape = shape;
  request.dimensions = 1;
  request.dtype = RM_UINT64;
  request.splits = splits.data();
  request.splits_count = size;
  rm_handle handle = 0;
  Check(rm_submit(&request, 1, &handle), what);
  Check(rm_wait(handle, kSeconds), what);
  const void* data = nullptr;
  size_t rows = 0, at = 0;
  Check(rm_result(handle, &data, &rows, nullptr, nullptr), what);
  for (size_t from = 0; from < size; ++from) {
    for (size_t i = 0; i < (from + self + 1) * scale; ++i, ++at) {
      if (static_cast<const uint64_t*>(data)[at] != from * 100 + self)
        Fail(what + ": element " + std::to_string(at));
    }
  }
  Expect(at == rows, what + " rows");
  rm_release(handle);
}

void Send(size_t count) {
  for (int root = 0; root < rm_size(); ++root) {
    std::vector<int16_t> data(count, static_cast<int16_t>(rm_rank()));
    const std::string what =
        "broadcast of " + std::to_string(count) + " from " + std::to_string(root);
    rm_handle handle = 0;
    Check(rm_broadcast_async(what.c_str(), data.data(), count, RM_INT16, root, &handle), what);
    Check(rm_wait(handle, kSeconds), what);
    rm_release(handle);
    for (int16_t value : data) {
      if (value != root) Fail(what);
    }
    ++results;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: mpi_collectives BY-MPI\n"), 2;
  Check(rm_init(kSeconds), "rm_init");
  Check(rm_shutdown_at_exit(), "rm_shutdown_at_exit");
  if (rm_mpi_enabled() != std::atoi(argv[1]))
    Fail("rm_mpi_enabled() is " + std::to_string(rm_mpi_enabled()));
  for (int type = 0; type < element::kTypes; ++type) {
    const auto dtype = static_cast<rm_dtype>(type);
    for (rm_op op : kOps) {
      if (dtype == RM_BOOL && op == RM_AVERAGE) continue;
      for (size_t count : {size_t{1}, size_t{1000}, size_t{200'003}}) Reduce(dtype, op, count);
      for (size_t rows : {size_t{1}, size_t{1001}}) Scatter(dtype, op, rows);
    }
  }
  TellsWhatIsSpecial();
  for (size_t scale : {size_t{0}, size_t{1}, size_t{50'000}}) {
    Gather(scale);
    Exchange(scale);
    Send(scale);
  }
  const std::string said = "rank " + std::to_string(rm_rank()) + " of " +
                           std::to_string(rm_size()) + ": " + std::to_string(results) +
                           " results are right\n";
  std::fputs(said.c_str(), stdout);
  return 0;
}
