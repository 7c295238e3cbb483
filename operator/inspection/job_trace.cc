#include "operator/inspection/job_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "common/job/rebuild.h"

namespace ringmaster::inspection {
namespace {

using Json = nlohmann::json;

constexpr double kEver = std::numeric_limits<double>::infinity();
// A rank that asks this much later than the others was waited for: less is noise on any machine.
constexpr double kLateUs = 200;

bool IsIn(const PodTrace& pod, const TraceEvent& event, const std::string& row) {
  const auto found = pod.rows.find({event.process, event.row});
  return found != pod.rows.end() && found->second == row;
}

// The number of an operation whose result no rank can have before all ranks have begun it; nullopt
// for other events.
std::optional<std::int64_t> JointOperation(const PodTrace& pod, const TraceEvent& event) {
  const bool joint =
      event.name == "ALLREDUCE" || event.name == "ALLGATHER" || event.name == "REDUCESCATTER";
  if (!joint || !IsIn(pod, event, "operations")) return std::nullopt;
  if (event.Number("process_set").value_or(0) != 0 || event.Number("bytes").value_or(0) <= 0)
    return std::nullopt;
  return event.Number("number");
}

// ---- Clocks

// The times of one operation on one machine.
struct Span {
  double last_begin = -kEver;
  double first_end = kEver;
};
using Spans = std::map<std::int64_t, Span>;  // by the operation's number

struct Machine {
  std::vector<std::size_t> pods;
  Spans spans;
};

std::vector<Machine> MachinesOf(const std::vector<PodTrace>& pods) {
  std::vector<Machine> machines;
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const auto [at, is_new] = known.emplace(
        pods[i].machine.empty() ? std::string("of pod ") + std::to_string(i) : pods[i].machine,
        machines.size());
    if (is_new) machines.emplace_back();
    Machine& machine = machines[at->second];
    machine.pods.push_back(i);
    for (const TraceEvent& event : pods[i].events) {
      const auto number = JointOperation(pods[i], event);
      if (!number) continue;
      Span& span = machine.spans[*number];
      span.last_begin = std::max(span.last_begin, event.at_us);
      span.first_end = std::min(span.first_end, event.end_us());
    }
  }
  return machines;
}

ClockNote Compare(const Spans& theirs, const Spans& reference) {
  double least = -kEver, most = kEver;
  for (const auto& [number, span] : theirs) {
    const auto same = reference.find(number);
    if (same == reference.end()) continue;
    least = std::max(least, span.last_begin - same->second.first_end);
    most = std::min(most, span.first_end - same->second.last_begin);
  }
  ClockNote note;
  if (least == -kEver || most == kEver) return note;
  note.compared = true;
  note.ahead_us = (least + most) / 2;
  note.uncertain_us = std::max(0.0, (most - least) / 2);
  return note;
}

void Shift(PodTrace* pod, double us) {
  for (TraceEvent& event : pod->events) event.at_us += us;
}

// ---- Late ranks

struct Wait {
  int rank = -1;
  std::string worker;
  double took_us = 0;
};

// The number of ranks in the newest view, if a pod reports it; else the number of known ranks.
std::size_t RanksOf(const JobTrace& trace) {
  std::size_t ranks = 0;
  std::optional<std::int64_t> size;
  double at = 0;
  for (const PodTrace& pod : trace.pods) {
    for (const TraceWorker& worker : pod.workers) ranks += worker.rank >= 0 ? 1 : 0;
    for (const TraceEvent& event : pod.events) {
      const auto told = event.Number("size");
      if (!told || event.at_us < at || !IsIn(pod, event, "views")) continue;
      size = told;
      at = event.at_us;
    }
  }
  return size && *size > 0 ? static_cast<std::size_t>(*size) : ranks;
}

// Compares how long each rank waited, which doesn't depend on the clocks. An operation that not all
// ranks report is skipped, because a missing rank may have been the late one.
void FindLate(JobTrace* trace) {
  const std::size_t ranks = RanksOf(*trace);
  std::map<std::int64_t, std::vector<Wait>> operations;
  for (const PodTrace& pod : trace->pods) {
    std::map<int, const TraceWorker*> by_process;
    for (const TraceWorker& worker : pod.workers) by_process[worker.process] = &worker;
    for (const TraceEvent& event : pod.events) {
      const auto number = event.Number("number");
      if (!number || by_process.count(event.process) == 0 || !IsIn(pod, event, "waits")) continue;
      if (event.Number("process_set").value_or(0) != 0) continue;
      const TraceWorker& worker = *by_process[event.process];
      if (worker.rank < 0) continue;
      operations[*number].push_back({worker.rank, WorkerName(pod, worker), event.took_us});
    }
  }
  std::map<int, LateRank> late;
  for (auto& [number, waits] : operations) {
    if (waits.size() < ranks || waits.size() < 2) continue;
    ++trace->operations;
    std::partial_sort(waits.begin(), waits.begin() + 2, waits.end(),
                      [](const Wait& a, const Wait& b) { return a.took_us < b.took_us; });
    const double by = waits[1].took_us - waits[0].took_us;
    if (by < kLateUs) continue;
    LateRank& rank = late[waits[0].rank];
    rank.rank = waits[0].rank;
    rank.worker = waits[0].worker;
    ++rank.last;
    rank.waited_us += by;
  }
  for (const auto& [number, rank] : late) trace->late.push_back(rank);
  std::sort(trace->late.begin(), trace->late.end(),
            [](const LateRank& a, const LateRank& b) { return a.waited_us > b.waited_us; });
}

// ---- The text

class ChromeWriter {
 public:
  explicit ChromeWriter(const JobTrace& trace) {
    for (const PodTrace& pod : trace.pods)
      for (const TraceEvent& event : pod.events) events_[{&pod, event.process}].push_back(&event);
  }
  void Name(const char* what, int process, int row, const std::string& name) {
    Put({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", row}, {"args", {{"name", name}}}});
  }
  void Process(int process, const std::string& name) {
    Name("process_name", process, 0, name);
    Put({{"ph", "M"},
         {"name", "process_sort_index"},
         {"pid", process},
         {"tid", 0},
         {"args", {{"sort_index", process}}}});
  }
  void Event(const TraceEvent& event, int process) {
    Json args = Json::object();
    for (const auto& [name, value] : event.numbers) args[name] = value;
    if (!event.note.empty()) args["note"] = event.note;
    Json json = {{"name", event.name}, {"pid", process}, {"tid", event.row}, {"ts", event.at_us}};
    json["args"] = std::move(args);
    if (event.took_us > 0) {
      json["ph"] = "X";
      json["dur"] = event.took_us;
    } else {
      json["ph"] = "i";
      json["s"] = "t";
    }
    Put(json);
  }
  // Writes everything of one process of a pod under another process number, and only once: a pod
  // may say of many workers that they are one process.
  void Of(const PodTrace& pod, int from, int to) {
    if (!written_.insert({&pod, from}).second) return;
    for (auto at = pod.rows.lower_bound({from, std::numeric_limits<int>::min()});
         at != pod.rows.end() && at->first.first == from; ++at) {
      Name("thread_name", to, at->first.second, at->second);
    }
    for (const TraceEvent* event : EventsOf(pod, from)) Event(*event, to);
  }
  const std::vector<const TraceEvent*>& EventsOf(const PodTrace& pod, int process) {
    return events_[{&pod, process}];
  }
  std::string Text() && { return std::move(text_) + "\n]}\n"; }

 private:
  void Put(const Json& json) {
    if (!first_) text_ += ",\n";
    first_ = false;
    text_ += json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  using Source = std::pair<const PodTrace*, int>;  // a process of a pod
  std::map<Source, std::vector<const TraceEvent*>> events_;
  std::set<Source> written_;
  std::string text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  bool first_ = true;
};

// The processes of the sidecar itself, which belong to no worker.
std::map<int, std::string> SidecarsOwn(const PodTrace& pod) {
  std::map<int, std::string> own = pod.names;
  for (const TraceWorker& worker : pod.workers) own.erase(worker.process);
  return own;
}

// Writes the coordinator's changes, and how long the death of a worker went unnoticed, which only
// the sidecar of its pod knows.
void WriteChanges(const JobTrace& trace, ChromeWriter* out) {
  const PodTrace* const teller = Teller(trace);
  for (const PodTrace& pod : trace.pods) {
    for (const auto& [process, name] : SidecarsOwn(pod)) {
      if (&pod == teller) {
        out->Process(0, name);
        out->Of(pod, process, 0);
        continue;
      }
      for (const TraceEvent* event : out->EventsOf(pod, process))
        if (event->name == job::kDetect) out->Event(*event, 0);
    }
  }
}

}  // namespace

std::string WorkerName(const PodTrace& pod, const TraceWorker& worker) {
  const bool several = pod.workers.size() + pod.missing.size() > 1;
  return several ? pod.pod + "/" + std::to_string(worker.slot) : pod.pod;
}

const PodTrace* Teller(const JobTrace& trace) {
  for (const PodTrace& pod : trace.pods)
    if (pod.coordinator) return &pod;
  return trace.pods.empty() ? nullptr : &trace.pods.front();
}

double JobTrace::first_us() const {
  double first = kEver;
  for (const PodTrace& pod : pods)
    for (const TraceEvent& event : pod.events) first = std::min(first, event.at_us);
  return first == kEver ? 0 : first;
}

double JobTrace::last_us() const {
  double last = 0;
  for (const PodTrace& pod : pods)
    for (const TraceEvent& event : pod.events) last = std::max(last, event.end_us());
  return last;
}

std::size_t JobTrace::workers() const {
  std::size_t workers = 0;
  for (const PodTrace& pod : pods) workers += pod.workers.size();
  return workers;
}

JobTrace LayTogether(std::vector<PodTrace> pods) {
  // The coordinator's machine comes first, because its clock is the reference.
  std::stable_sort(pods.begin(), pods.end(), [](const PodTrace& a, const PodTrace& b) {
    return a.coordinator && !b.coordinator;
  });
  JobTrace trace{std::move(pods), {}, 0, {}};
  const std::vector<Machine> machines = MachinesOf(trace.pods);
  for (std::size_t i = 1; i < machines.size(); ++i) {
    ClockNote note = Compare(machines[i].spans, machines[0].spans);
    note.pod = trace.pods[machines[i].pods.front()].pod;
    note.pods = machines[i].pods;
    for (const std::size_t pod : note.pods) Shift(&trace.pods[pod], -note.ahead_us);
    trace.clocks.push_back(std::move(note));
  }
  FindLate(&trace);
  return trace;
}

std::string TimelineNotes(const JobTrace& trace) {
  std::string text;
  for (const ClockNote& clock : trace.clocks) {
    text +=
        clock.compared
            ? fmt::format("The clock of {} is {:.3f} ms ahead, give or take {:.3f}: corrected.\n",
                          clock.pod, clock.ahead_us / 1000, clock.uncertain_us / 1000)
            : fmt::format("Nothing tells how far the clock of {} is off: taken as it is.\n",
                          clock.pod);
  }
  if (trace.late.empty()) return text;
  const LateRank& late = trace.late.front();
  return text + fmt::format(
                    "Rank {} ({}) was the last in {} of {} operations: the others waited "
                    "{:.3f} s for it.\n",
                    late.rank, late.worker, late.last, trace.operations, late.waited_us / 1e6);
}

std::string ChromeText(const JobTrace& trace) {
  ChromeWriter out(trace);
  struct Place {
    const PodTrace* pod;
    const TraceWorker* worker;
  };
  std::vector<Place> places;
  for (const PodTrace& pod : trace.pods)
    for (const TraceWorker& worker : pod.workers) places.push_back({&pod, &worker});
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    const auto order = [](int rank) { return rank < 0 ? std::numeric_limits<int>::max() : rank; };
    return order(a.worker->rank) < order(b.worker->rank);
  });
  WriteChanges(trace, &out);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& [pod, worker] = places[i];
    const std::string rank =
        worker->rank < 0 ? "in no view" : std::string("rank ") + std::to_string(worker->rank);
    out.Process(static_cast<int>(i) + 1, rank + ": " + WorkerName(*pod, *worker));
    out.Of(*pod, worker->process, static_cast<int>(i) + 1);
  }
  return std::move(out).Text();
}

}  // namespace ringmaster::inspection
