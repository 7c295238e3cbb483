#include "collectives/engine/request.h"

#include <map>

#include "collectives/element/element.h"

namespace ringmaster::engine {
namespace {

std::string Number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

std::string Ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const size_t shown = std::min<size_t>(ranks.size(), 8);
  for (size_t i = 0; i < shown; ++i) text += (i ? "," : "") + std::to_string(ranks[i]);
  return text + (shown < ranks.size() ? ",..." : "");
}

// "count is 4 on ranks 0,2 and 5 on rank 1", or empty if all values are the same.
std::string Differences(const char* field, const std::vector<std::string>& by_rank) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto group = groups.begin();
    while (group != groups.end() && group->first != by_rank[rank]) ++group;
    if (group == groups.end()) group = groups.insert(groups.end(), {by_rank[rank], {}});
    group->second.push_back(static_cast<int>(rank));
  }
  if (groups.size() < 2) return {};
  std::string text = std::string(field) + " is ";
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i > 0) text += i + 1 < groups.size() ? ", " : " and ";
    text += groups[i].first + " on " + Ranks(groups[i].second);
  }
  return text;
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
  }
  return "unknown";
}

uint64_t Request::bytes() const { return count * element::Size(dtype); }

void Write(ByteWriter* out, const Request& request) {
  out->PutString(request.name);
  out->Put(static_cast<uint8_t>(request.kind));
  out->Put(static_cast<uint8_t>(request.dtype));
  out->Put(static_cast<uint8_t>(request.op));
  out->Put(request.root);
  out->Put(request.count);
  out->Put(request.prescale);
  out->Put(request.postscale);
}

Request ReadRequest(ByteReader* in) {
  Request request;
  request.name = in->GetString();
  request.kind = static_cast<Kind>(in->Get<uint8_t>());
  request.dtype = static_cast<rm_dtype>(in->Get<uint8_t>());
  request.op = static_cast<rm_op>(in->Get<uint8_t>());
  request.root = in->Get<int32_t>();
  request.count = in->Get<uint64_t>();
  request.prescale = in->Get<double>();
  request.postscale = in->Get<double>();
  return request;
}

std::string DescribeMismatch(const std::vector<Request>& by_rank) {
  const auto differ = [&](const char* field, auto&& text) {
    std::vector<std::string> values;
    for (const Request& request : by_rank) values.push_back(text(request));
    return Differences(field, values);
  };
  std::string why =
      differ("operation", [](const Request& r) { return std::string(KindName(r.kind)); });
  if (why.empty())
    why = differ("dtype", [](const Request& r) { return std::string(element::Name(r.dtype)); });
  if (why.empty())
    why = differ("op", [](const Request& r) { return std::string(element::OpName(r.op)); });
  if (why.empty()) why = differ("root", [](const Request& r) { return std::to_string(r.root); });
  if (why.empty()) {
    const bool gather = !by_rank.empty() && by_rank[0].kind == Kind::kAllgather;
    why = differ(gather ? "elements in a row" : "element count",
                 [](const Request& r) { return std::to_string(r.count); });
  }
  if (why.empty()) why = differ("prescale", [](const Request& r) { return Number(r.prescale); });
  if (why.empty()) why = differ("postscale", [](const Request& r) { return Number(r.postscale); });
  if (why.empty()) return {};
  return "tensor '" + by_rank[0].name + "' differs between ranks: " + why;
}

}  // namespace ringmaster::engine
