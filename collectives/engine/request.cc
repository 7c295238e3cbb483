#include "collectives/engine/request.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "collectives/element/element.h"
#include "collectives/engine/pieces.h"

namespace ringmaster::engine {
namespace {

// The shortest text that no other number has.
std::string Number(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

std::string Ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const size_t shown = std::min<size_t>(ranks.size(), 8);
  for (size_t i = 0; i < shown; ++i) text += (i ? "," : "") + std::to_string(ranks[i]);
  return text + (shown < ranks.size() ? ",..." : "");
}

// "count is 4 on ranks 0,2 and 5 on rank 1", or empty if all values are the same.
std::string Differences(const char* field, const std::map<int, std::string>& by_rank) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const auto& [rank, value] : by_rank) {
    auto group = groups.begin();
    while (group != groups.end() && group->first != value) ++group;
    if (group == groups.end()) group = groups.insert(groups.end(), {value, {}});
    group->second.push_back(rank);
  }
  if (groups.size() < 2) return {};
  std::string text = std::string(field) + " is ";
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i > 0) text += i + 1 < groups.size() ? ", " : " and ";
    text += groups[i].first + " on " + Ranks(groups[i].second);
  }
  return text;
}

std::string MembersText(const Request& request) {
  std::string text = "[";
  for (const std::string& worker : request.members) {
    if (text.size() > 1) text += ", ";
    text += worker;
  }
  return text + "]";
}

std::string GroupText(const Request& request) {
  if (request.group.size == 0) return "none";
  return "that of '" + request.group.first + "' with " + std::to_string(request.group.size) +
         " tensors";
}

// Where the tensors of prepared groups differ: their number first, then the first shape.
std::string DescribePieces(const std::map<int, Request>& by_rank) {
  std::map<int, std::vector<std::string>> shapes;
  std::map<int, std::string> values;
  for (const auto& [rank, request] : by_rank) {
    shapes[rank] = ShapesOfPieces(request.pieces);
    values[rank] = shapes[rank].empty() ? "none" : std::to_string(shapes[rank].size());
  }
  std::string why = Differences("number of tensors in the prepared group", values);
  const size_t pieces = shapes.begin()->second.size();
  for (size_t i = 0; why.empty() && i < pieces; ++i) {
    for (const auto& [rank, listed] : shapes) values[rank] = listed[i];
    why = Differences(("shape of tensor " + std::to_string(i) + " of the prepared group").c_str(),
                      values);
  }
  return why;
}

}  // namespace

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kAllreduce:
      return "allreduce";
    case Kind::kAllgather:
      return "allgather";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kBarrier:
      return "barrier";
    case Kind::kStepEnd:
      return "step_end";
    case Kind::kShutdown:
      return "shutdown";
    case Kind::kReducescatter:
      return "reducescatter";
    case Kind::kAlltoall:
      return "alltoall";
    case Kind::kJoin:
      return "join";
    case Kind::kAddSet:
      return "add_process_set";
    case Kind::kRemoveSet:
      return "remove_process_set";
    case Kind::kTransfer:
      return "send";
  }
  return "unknown";
}

Group GroupOf(const std::vector<std::string>& names, int32_t process_set) {
  uint64_t digest = 14695981039346656037u;  // FNV-1a: the same on every machine
  for (const std::string& name : names) {
    for (size_t i = 0; i <= name.size(); ++i) {
      digest = (digest ^ static_cast<unsigned char>(name.c_str()[i])) * 1099511628211u;
    }
  }
  digest = (digest ^ static_cast<uint32_t>(process_set)) * 1099511628211u;
  return {names.front(), static_cast<uint32_t>(names.size()), digest};
}

const std::string& Request::key() const {
  if (!is_partial()) return name;
  thread_local std::string key;
  key = name;
  if (kind == Kind::kTransfer) {
    for (const std::string& worker : members) key.append(1, kSetSeparator).append(worker);
  }
  key.append(1, kSetSeparator).append(std::to_string(process_set));
  return key;
}

int32_t SetOfKey(const std::string& key) {
  const size_t at = key.rfind(kSetSeparator);
  return at == std::string::npos ? 0 : std::atoi(key.c_str() + at + 1);
}

uint64_t Request::bytes() const { return count * element::Size(dtype); }

std::string ShapeText(const Request& request) {
  if (request.shape.empty()) return "[" + std::to_string(request.count) + "]";
  std::string text = "[";
  for (uint64_t extent : request.shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

void Write(ByteWriter* out, const Request& request) {
  out->PutString(request.name);
  out->Put(static_cast<uint8_t>(request.kind));
  out->Put(static_cast<uint8_t>(request.dtype));
  out->Put(static_cast<uint8_t>(request.op));
  out->PutString(request.root);
  out->Put(request.count);
  out->Put(request.prescale);
  out->Put(request.postscale);
  out->Put(static_cast<uint32_t>(request.shape.size()));
  for (uint64_t extent : request.shape) out->Put(extent);
  out->PutString(request.group.first);
  out->Put(request.group.size);
  out->Put(request.group.digest);
  out->Put(request.priority);
  out->PutString(request.problem);
  out->Put(request.process_set);
  // The shapes of pieces travel as a member, which an allreduce has none of: so a rank whose
  // library knows of no pieces reads what follows, and takes part if it has joined.
  const std::vector<std::string> pieces(request.pieces.empty() ? 0 : 1, request.pieces);
  const auto& members = request.kind == Kind::kAllreduce ? pieces : request.members;
  out->Put(static_cast<uint32_t>(members.size()));
  for (const std::string& member : members) out->PutString(member);
  out->Put(request.removed_set);
  out->Put(static_cast<uint8_t>(request.on_gpu));
}

Request ReadRequest(ByteReader* in) {
  Request request;
  request.name = in->GetString();
  request.kind = static_cast<Kind>(in->Get<uint8_t>());
  request.dtype = static_cast<rm_dtype>(in->Get<uint8_t>());
  request.op = static_cast<rm_op>(in->Get<uint8_t>());
  request.root = in->GetString();
  request.count = in->Get<uint64_t>();
  request.prescale = in->Get<double>();
  request.postscale = in->Get<double>();
  const auto dimensions = in->Get<uint32_t>();
  for (uint32_t i = 0; i < dimensions && in->ok(); ++i)
    request.shape.push_back(in->Get<uint64_t>());
  request.group.first = in->GetString();
  request.group.size = in->Get<uint32_t>();
  request.group.digest = in->Get<uint64_t>();
  request.priority = in->Get<int32_t>();
  request.problem = in->GetString();
  request.process_set = in->Get<int32_t>();
  const auto members = in->Get<uint32_t>();
  for (uint32_t i = 0; i < members && in->ok(); ++i) request.members.push_back(in->GetString());
  if (request.kind == Kind::kAllreduce && !request.members.empty()) {
    request.pieces = std::move(request.members.front());
    request.members.clear();
  }
  request.removed_set = in->Get<int32_t>();
  request.on_gpu = in->Get<uint8_t>() != 0;
  return request;
}

std::string DescribeMismatch(const std::map<int, Request>& by_rank) {
  if (by_rank.empty()) return {};
  const Request& first = by_rank.begin()->second;
  const auto differ = [&](const char* field, auto&& text) {
    std::map<int, std::string> values;
    for (const auto& [rank, request] : by_rank) values[rank] = text(request);
    return Differences(field, values);
  };
  const auto any = [&](auto&& holds) {
    return std::any_of(by_rank.begin(), by_rank.end(),
                       [&](const auto& entry) { return holds(entry.second); });
  };
  std::string why =
      differ("operation", [](const Request& r) { return std::string(KindName(r.kind)); });
  if (why.empty()) {
    why = differ("memory",
                 [](const Request& r) { return std::string(r.on_gpu ? "a GPU's" : "the host's"); });
  }
  if (why.empty())
    why = differ("dtype", [](const Request& r) { return std::string(element::Name(r.dtype)); });
  if (why.empty())
    why = differ("op", [](const Request& r) { return std::string(element::OpName(r.op)); });
  if (why.empty()) why = differ("root", [](const Request& r) { return r.root; });
  if (why.empty()) why = DescribePieces(by_rank);
  const bool gather = IsRagged(first.kind);
  if (why.empty() && any([](const Request& r) { return !r.shape.empty(); })) {
    why = differ(gather ? "shape of a row" : "shape", ShapeText);
  }
  if (why.empty()) {
    why = differ(gather ? "elements in a row" : "element count",
                 [](const Request& r) { return std::to_string(r.count); });
  }
  if (why.empty()) why = differ("prescale", [](const Request& r) { return Number(r.prescale); });
  if (why.empty()) why = differ("postscale", [](const Request& r) { return Number(r.postscale); });
  if (why.empty()) why = differ("group", GroupText);
  if (why.empty()) why = differ("list of the set's workers", MembersText);
  if (why.empty()) {
    why = differ("process set", [](const Request& r) { return std::to_string(r.removed_set); });
  }
  if (why.empty() && any([&](const Request& r) { return r.group != first.group; })) {
    why = "the other tensors of its group have other names or another order";
  }
  if (why.empty()) return {};
  return "tensor '" + first.name + "' differs between ranks: " + why;
}

}  // namespace ringmaster::engine
