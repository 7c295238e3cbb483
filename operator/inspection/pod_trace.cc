#include "operator/inspection/pod_trace.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/fields/int.h"
#include "operator/inspection/answer_limits.h"
#include "operator/inspection/sidecar_status.h"

namespace ringmaster::inspection {
namespace {

using fields::Int;
using Json = nlohmann::json;

// Limits for a sidecar's answer, because a tenant's pod may answer anything. Real answers are
// smaller.
constexpr std::size_t kMostEvents = 1'000'000;
constexpr std::size_t kMostRows = 200'000;
constexpr std::size_t kMostNumbers = 8;
constexpr double kLatest = 1e17;  // microseconds since 1970

double Time(const Json& event, const char* name) {
  const double time = fields::Number(event, name);
  return std::isfinite(time) && time >= 0 && time < kLatest ? time : 0;
}

bool FitsInteger(const Json& value) {
  if (value.is_number_unsigned()) return std::in_range<std::int64_t>(value.get<std::uint64_t>());
  return value.is_number_integer();
}

void AddName(const Json& event, PodTrace* trace) {
  if (trace->rows.size() + trace->names.size() >= kMostRows) return;
  const std::string what = fields::Text(event, "name");
  const std::string name = ShortText(fields::Text(fields::Member(event, "args"), "name"));
  if (what == "process_name") trace->names[Int(event, "pid")] = name;
  if (what == "thread_name") trace->rows[{Int(event, "pid"), Int(event, "tid")}] = name;
}

void AddEvent(const Json& event, PodTrace* trace) {
  TraceEvent read;
  read.name = ShortText(fields::Text(event, "name"));
  read.process = Int(event, "pid");
  read.row = Int(event, "tid");
  read.at_us = Time(event, "ts");
  read.took_us = Time(event, "dur");
  for (const auto& [name, value] : fields::Object(event, "args").items()) {
    if (FitsInteger(value) && read.numbers.size() < kMostNumbers)
      read.numbers.emplace_back(ValueName(name), value.get<std::int64_t>());
  }
  const Json& args = fields::Object(event, "args");
  const std::string reason = fields::Text(args, "reason");
  read.note = ShortText(reason.empty() ? fields::Text(args, "tensor") : reason);
  trace->events.push_back(std::move(read));
}

}  // namespace

std::optional<std::int64_t> TraceEvent::Number(const std::string& of) const {
  for (const auto& [name, value] : numbers)
    if (name == of) return value;
  return std::nullopt;
}

std::optional<PodTrace> ParsePodTrace(const Json& document) {
  const Json& about = fields::Member(document, "ringmaster");
  if (!about.is_object()) return std::nullopt;
  PodTrace trace;
  trace.pod = ShortText(fields::TextAt(about, "/pod/name"));
  trace.coordinator = fields::Flag(about, "coordinator");
  trace.machine = ShortText(fields::Text(about, "machine"));
  for (const Json& worker : fields::List(about, "workers")) {
    if (trace.workers.size() == kMostWorkers) break;
    trace.workers.push_back({Int(worker, "rank", -1), Int(worker, "slot"), Int(worker, "process")});
  }
  for (const Json& worker : fields::List(about, "missing")) {
    if (trace.missing.size() == kMostWorkers) break;
    trace.missing.push_back(
        {Int(worker, "slot"), Int(worker, "rank", -1), ShortText(fields::Text(worker, "why"))});
  }
  for (const Json& event : fields::List(document, "traceEvents")) {
    if (trace.events.size() == kMostEvents) break;
    const std::string phase = fields::Text(event, "ph");
    if (phase == "M") AddName(event, &trace);
    if (phase == "X" || phase == "i") AddEvent(event, &trace);
  }
  return trace;
}

}  // namespace ringmaster::inspection
