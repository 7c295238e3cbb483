#include "collectives/elastic/request_reader.h"

#include <cmath>
#include <cstring>
#include <string>

#include "collectives/element/element.h"
#include "collectives/engine/adasum.h"

namespace ringmaster::elastic {
namespace {

using engine::Kind;
using engine::Operation;
using engine::Request;

Status Invalid(const std::string& message) { return {RM_ERR_INVALID, message}; }

Status CheckName(const char* name) {
  if (name == nullptr || name[0] == '\0') return Invalid("name is empty: a tensor needs one");
  if (name[0] == engine::kReservedPrefix) {
    return Invalid("name begins with the byte 1, which is reserved for the library");
  }
  if (std::strchr(name, engine::kSetSeparator) != nullptr) {
    return Invalid("name contains the byte 2, which is reserved for the library");
  }
  return {};
}

// Turns one request of the caller into an operation.
class Reader {
 public:
  Reader(const rm_request& given, const Asker& asker) : given_(given), asker_(asker) {}

  Status Read() {
    if (given_.kind == RM_JOIN) {
      request_.name = engine::kJoinName;
      request_.kind = Kind::kJoin;
      return {};
    }
    if (Status s = CheckName(given_.name); !s.ok()) return s;
    which_ = std::string("tensor '") + given_.name + "': ";
    request_.name = given_.name;
    request_.priority = given_.priority;
    if (Status s = ReadDevice(); !s.ok()) return s;
    if (given_.process_set < 0) return Wrong("process_set", given_.process_set, "0 and more");
    request_.process_set = given_.process_set;
    switch (given_.kind) {
      case RM_ALLREDUCE:
        return ReadAllreduce();
      case RM_ALLGATHER:
        return ReadAllgather();
      case RM_BROADCAST:
        return ReadBroadcast();
      case RM_BROADCAST_BYTES:
        return ReadBroadcastBytes();
      case RM_BARRIER:
        request_.kind = Kind::kBarrier;
        return {};
      case RM_REDUCESCATTER:
        return ReadReducescatter();
      case RM_ALLTOALL:
        return ReadAlltoall();
      case RM_SEND:
      case RM_RECEIVE:
        return ReadTransfer();
      case RM_JOIN:  // handled above
      case RM_KIND_ANY_INT_:
        break;
    }
    return Wrong("kind", static_cast<int>(given_.kind), "1 to 10");
  }

  const std::string& name() const { return request_.name; }

  std::shared_ptr<Operation> Take(const engine::Group& group) {
    request_.group = group;
    return std::make_shared<Operation>(
        std::move(request_), in_, out_, rows_, std::move(splits_),
        engine::Operation::OnDevice{given_.device - 1, given_.ready_event});
  }

 private:
  Status Wrong(const std::string& field, int64_t value, const std::string& allowed) const {
    return Invalid(which_ + field + " is " + std::to_string(value) + ", allowed is " + allowed);
  }

  Status ReadDevice() {
    if (given_.device < 0) {
      return Wrong("device", given_.device, "0, the host's memory, or 1 and more, a GPU's");
    }
    if (given_.device == 0 && given_.ready_event != nullptr) {
      return Invalid(which_ + "ready_event must be NULL where device is 0, the host's memory");
    }
    request_.on_gpu = given_.device > 0 && given_.kind != RM_BARRIER;
    return {};
  }

  // Reads what the ranks compare. The first `skip` extents are left out, because ranks may differ
  // in them.
  Status Describe(Kind kind, int skip) {
    if (given_.dimensions < skip || (given_.shape == nullptr && given_.dimensions > 0)) {
      return Invalid(which_ + "the shape must have " + std::to_string(skip) +
                     " dimensions or more");
    }
    const size_t element = element::Size(given_.dtype);
    if (element == 0) {
      return Wrong("dtype", static_cast<int>(given_.dtype),
                   "0 to " + std::to_string(element::kTypes - 1));
    }
    request_.kind = kind;
    request_.dtype = given_.dtype;
    request_.count = 1;
    for (int i = skip; i < given_.dimensions; ++i) {
      const size_t extent = given_.shape[i];
      if (extent > 0 && request_.count > SIZE_MAX / 2 / element / extent) {
        return Invalid(which_ + "count is " + std::to_string(extent) + " times " +
                       std::to_string(request_.count));
      }
      request_.count *= extent;
      request_.shape.push_back(extent);
    }
    if (request_.shape.size() < 2) request_.shape.clear();
    return {};
  }

  Status CheckBuffer(const void* data) const {
    if (data != nullptr || request_.count == 0) return {};
    return Invalid(which_ + "the buffer is null and count is " + std::to_string(request_.count));
  }

  Status CheckReduction() {
    if (given_.op == RM_ADASUM && given_.kind == RM_ALLREDUCE) {
      if (engine::HasAdasum(given_.dtype)) return ReadScales();
      return Invalid(which_ + "op is adasum, which is for floating point, and dtype is " +
                     element::Name(given_.dtype));
    }
    if (!element::IsKnownOp(given_.op)) {
      return Wrong("op", static_cast<int>(given_.op),
                   given_.kind == RM_ALLREDUCE ? "0 to 5" : "0 to 4");
    }
    if (given_.op == RM_AVERAGE && given_.dtype == RM_BOOL) {
      return Invalid(which_ + "op is average, which bool has none of");
    }
    return ReadScales();
  }

  Status ReadScales() {
    if (!std::isfinite(given_.prescale) || !std::isfinite(given_.postscale)) {
      return Invalid(which_ + "prescale and postscale must be finite");
    }
    request_.op = given_.op;
    request_.prescale = given_.prescale;
    request_.postscale = given_.postscale;
    return {};
  }

  Status ReadAllreduce() {
    if (Status s = Describe(Kind::kAllreduce, 0); !s.ok()) return s;
    if (Status s = CheckBuffer(given_.in); !s.ok()) return s;
    if (Status s = CheckBuffer(given_.out); !s.ok()) return s;
    in_ = given_.in;
    out_ = given_.out;
    return CheckReduction();
  }

  Status ReadRows(Kind kind) {
    if (Status s = Describe(kind, 1); !s.ok()) return s;
    rows_ = given_.shape[0];
    if (request_.count > 0 && rows_ > SIZE_MAX / 16 / request_.count) {
      return Invalid(which_ + "rows is " + std::to_string(rows_));
    }
    in_ = given_.in;
    return rows_ == 0 ? Status() : CheckBuffer(in_);
  }

  Status ReadReducescatter() {
    if (given_.dimensions < 1) return Invalid(which_ + "the shape must have 1 dimension or more");
    if (Status s = Describe(Kind::kReducescatter, 0); !s.ok()) return s;
    in_ = given_.in;
    if (Status s = CheckBuffer(in_); !s.ok()) return s;
    return CheckReduction();
  }

  Status ReadAlltoall() {
    if (Status s = ReadRows(Kind::kAlltoall); !s.ok()) return s;
    const std::vector<std::string> workers = asker_.members(given_.process_set);
    const size_t ranks = workers.size();
    if (given_.splits == nullptr && ranks > 0) {
      ShareEvenly(workers);
      return {};
    }
    if (given_.splits != nullptr) {
      splits_.rows.assign(given_.splits, given_.splits + given_.splits_count);
    }
    splits_.workers = workers;
    // A caller that has asked for the set's size after a fault has given so many.
    if (given_.splits_count != ranks) {
      std::vector<std::string> now = asker_.members_now(given_.process_set);
      if (given_.splits_count == now.size()) splits_.workers = std::move(now);
    }
    CheckSplits();
    return {};
  }

  // Among the ranks of the step's beginning. A caller that has asked for the set's size after a
  // fault may have rows for those that are left.
  void ShareEvenly(std::vector<std::string> workers) {
    const size_t ranks = workers.size();
    if (rows_ % ranks != 0) {
      std::vector<std::string> now = asker_.members_now(given_.process_set);
      if (!now.empty() && rows_ % now.size() == 0) workers = std::move(now);
    }
    if (rows_ % workers.size() != 0) {
      request_.problem = "no splits are given, and " + std::to_string(rows_) +
                         " rows can't be shared evenly by " + std::to_string(ranks) + " ranks";
    }
    splits_.rows.assign(workers.size(), rows_ / workers.size());
    splits_.workers = std::move(workers);
  }

  void CheckSplits() {
    uint64_t sum = 0;
    for (uint64_t split : splits_.rows) {
      sum += split;
      if (split > rows_ || sum > rows_) break;  // stops before the sum can overflow
    }
    if (splits_.rows.size() != splits_.workers.size()) {
      request_.problem = "splits has " + std::to_string(splits_.rows.size()) +
                         " entries, there are " + std::to_string(splits_.workers.size()) + " ranks";
    } else if (sum != rows_) {
      request_.problem = "the sum of splits is " + std::to_string(sum) +
                         " or more, the tensor has " + std::to_string(rows_) + " rows";
      if (sum < rows_) {
        request_.problem = "the sum of splits is " + std::to_string(sum) + ", the tensor has " +
                           std::to_string(rows_) + " rows";
      }
    }
  }

  Status ReadAllgather() { return ReadRows(Kind::kAllgather); }

  Status ReadRoot() {
    if (given_.root == nullptr || given_.root[0] == '\0') {
      return Invalid(std::string("broadcast '") + given_.name + "': root is no worker of the view");
    }
    request_.root = given_.root;
    return {};
  }

  Status ReadBroadcast() {
    if (Status s = Describe(Kind::kBroadcast, 0); !s.ok()) return s;
    if (Status s = CheckBuffer(given_.out); !s.ok()) return s;
    in_ = out_ = given_.out;
    return ReadRoot();
  }

  // This is an allgather of rows of one byte, which the root alone gives.
  Status ReadBroadcastBytes() {
    if (Status s = ReadRows(Kind::kAllgather); !s.ok()) return s;
    if (Status s = ReadRoot(); !s.ok()) return s;
    if (rows_ > 0 && request_.root != asker_.worker) {
      request_.problem = "only the root, " + request_.root + ", gives bytes, and " +
                         std::to_string(rows_) + " were given";
    }
    return {};
  }

  // Both workers make the same request: from whom, to whom and what.
  Status ReadTransfer() {
    const bool sends = given_.kind == RM_SEND;
    const void* data = sends ? given_.in : given_.out;
    if (Status s = Describe(Kind::kTransfer, 0); !s.ok()) return s;
    if (Status s = CheckBuffer(data); !s.ok()) return s;
    if (request_.on_gpu) {
      return Wrong("device", given_.device,
                   "0: what is sent to one worker lies in the host's memory");
    }
    const std::string other = given_.root == nullptr ? "" : given_.root;
    if (other.empty() || other == asker_.worker) {
      return Invalid(which_ + "root is '" + other + "', allowed is another worker of the view, " +
                     (sends ? "which receives it" : "which sends it"));
    }
    in_ = sends ? given_.in : nullptr;
    out_ = sends ? nullptr : given_.out;
    request_.root = sends ? asker_.worker : other;
    request_.members = {request_.root, sends ? other : asker_.worker};
    return {};
  }

  const rm_request& given_;
  const Asker& asker_;
  std::string which_;
  Request request_;
  const void* in_ = nullptr;
  void* out_ = nullptr;
  size_t rows_ = 0;
  Operation::Splits splits_;
};

// The size of rm_request as the oldest callers were compiled. It stays when fields are added: those
// that a caller doesn't know are 0.
constexpr size_t kOldestSize = 120;
static_assert(kOldestSize <= sizeof(rm_request));

bool StandsAlone(rm_kind kind) {
  return kind == RM_BARRIER || kind == RM_JOIN || kind == RM_SEND || kind == RM_RECEIVE;
}

Status CopyRequest(const std::byte* from, size_t size, rm_request* request) {
  std::memcpy(request, from, std::min(size, sizeof(rm_request)));
  if (request->size != size) {
    return Invalid("size is " + std::to_string(request->size) + " in one request and " +
                   std::to_string(size) + " in the first");
  }
  for (size_t i = sizeof(rm_request); i < size; ++i) {
    if (from[i] == std::byte{0}) continue;
    return Invalid("the request uses a field that this version of the library (" +
                   std::to_string(sizeof(rm_request)) + " bytes of it) does not know");
  }
  return {};
}

// *given: the requests in the layout of this version.
Status CopyRequests(const rm_request* requests, size_t n, std::vector<rm_request>* given) {
  if (requests == nullptr || n == 0) return Invalid("requests is null or n is 0");
  const size_t size = requests->size;
  if (size < kOldestSize || size > 64 * sizeof(rm_request)) {
    return Invalid("size is " + std::to_string(size) + ", must be sizeof(rm_request): " +
                   std::to_string(sizeof(rm_request)) + " or, of a newer caller, more");
  }
  given->resize(n);
  for (size_t i = 0; i < n; ++i) {
    const auto* at = reinterpret_cast<const std::byte*>(requests) + i * size;
    if (Status s = CopyRequest(at, size, &(*given)[i]); !s.ok()) return s;
  }
  return {};
}

// What one reduction of several tensors can't do, or a field in which they differ; empty if it is
// possible.
std::string WhyNotOne(const rm_request& first, const rm_request& request) {
  if (request.op == RM_ADASUM) return "op is adasum, which weighs each tensor by itself";
  if (request.ready_event != nullptr) {
    return "ready_event must be NULL: it is given with each rm_submit_group";
  }
  const auto differs = [&](const char* field, auto value, auto of_first) {
    return std::string(field) + " is " + std::to_string(value) + ", and of the group's first " +
           std::to_string(of_first) + ": a prepared group has one for all";
  };
  if (request.dtype != first.dtype) return differs("dtype", request.dtype, first.dtype);
  if (request.op != first.op) return differs("op", request.op, first.op);
  if (request.prescale != first.prescale)
    return differs("prescale", request.prescale, first.prescale);
  if (request.postscale != first.postscale)
    return differs("postscale", request.postscale, first.postscale);
  if (request.process_set != first.process_set)
    return differs("process_set", request.process_set, first.process_set);
  if (request.device != first.device) return differs("device", request.device, first.device);
  if (request.priority != first.priority)
    return differs("priority", request.priority, first.priority);
  return {};
}

}  // namespace

Status ReadRequests(const rm_request* requests, size_t n, const Asker& asker,
                    std::vector<std::shared_ptr<Operation>>* operations) {
  std::vector<rm_request> given;
  if (Status s = CopyRequests(requests, n, &given); !s.ok()) return s;
  std::vector<Reader> readers;
  std::vector<std::string> names;
  for (size_t i = 0; i < n; ++i) {
    if (Status s = readers.emplace_back(given[i], asker).Read(); !s.ok()) return s;
    names.push_back(readers.back().name());
    if (given[i].process_set != given[0].process_set) {
      return Invalid("'" + names.back() + "': process_set is " +
                     std::to_string(given[i].process_set) + " and of the group's first " +
                     std::to_string(given[0].process_set));
    }
    if ((given[i].device > 0) != (given[0].device > 0)) {
      return Invalid("'" + names.back() + "': device is " + std::to_string(given[i].device) +
                     " and of the group's first " + std::to_string(given[0].device) +
                     ": a group lies in one memory");
    }
    if (n > 1 && StandsAlone(given[i].kind)) {
      return Invalid("'" + names.back() +
                     "': a barrier, a join, a send or a receive can't be in a group");
    }
  }
  const engine::Group group =
      n > 1 ? engine::GroupOf(names, given[0].process_set) : engine::Group();
  for (Reader& reader : readers) operations->push_back(reader.Take(group));
  return {};
}

Status ReadPrepared(const char* name, const rm_request* requests, size_t n, PreparedGroup* group) {
  if (Status s = CheckName(name); !s.ok()) return s;
  std::vector<rm_request> given;
  if (Status s = CopyRequests(requests, n, &given); !s.ok()) return s;
  const auto at = [&](size_t i) {
    return "prepared group '" + std::string(name) + "', tensor " + std::to_string(i) + ": ";
  };
  const Asker nobody;  // an allreduce names no worker
  auto pieces = std::make_shared<engine::Pieces>();
  uint64_t count = 0;
  std::string shapes;
  for (size_t i = 0; i < n; ++i) {
    if (given[i].kind != RM_ALLREDUCE) {
      return Invalid(at(i) + "kind is " + std::to_string(given[i].kind) +
                     ", and only allreduces can be prepared");
    }
    given[i].name = name;
    Reader reader(given[i], nobody);
    if (Status s = reader.Read(); !s.ok()) return {s.code(), at(i) + s.message()};
    if (const std::string why = WhyNotOne(given[0], given[i]); !why.empty())
      return Invalid(at(i) + why);
    const std::shared_ptr<Operation> one = reader.Take({});
    if (i == 0) group->request = one->request;
    if (one->request.count > SIZE_MAX / 2 / element::Size(given[i].dtype) - count)
      return Invalid(at(i) + "with it the group has more bytes than memory can have");
    count += one->request.count;
    shapes += engine::ShapeText(one->request);
    pieces->push_back({one->in, one->out, one->request.count});
  }
  group->request.count = count;
  group->request.shape.clear();
  group->request.pieces = std::move(shapes);
  group->pieces = std::move(pieces);
  group->device = given[0].device - 1;
  return {};
}

}  // namespace ringmaster::elastic
