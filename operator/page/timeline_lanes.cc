#include "operator/page/timeline_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace ringmaster::page {
namespace {

using Json = nlohmann::json;

// In milliseconds, rounded to microseconds.
double Ms(double us) { return std::round(us) / 1000; }

class Window {
 public:
  Window(double from_us, double until_us) : from_us_(from_us), until_us_(until_us) {}
  bool Shows(const inspection::TraceEvent& event) const {
    return event.end_us() >= from_us_ && event.at_us <= until_us_;
  }
  // [ms since the beginning, ms it took], cut to what is shown.
  Json Bar(const inspection::TraceEvent& event) const {
    const double begin = std::max(event.at_us, from_us_);
    return {Ms(begin - from_us_), Ms(event.end_us() - begin)};
  }
  Json Moment(double us) const { return Ms(us - from_us_); }

 private:
  double from_us_;
  double until_us_;
};

std::string Described(const inspection::TraceEvent& event) {
  std::string text = event.name;
  if (const auto tensors = event.Number("tensors"); tensors && *tensors > 1)
    text += ", " + std::to_string(*tensors) + " tensors";
  if (const auto bytes = event.Number("bytes")) text += ", " + std::to_string(*bytes) + " bytes";
  return text;
}

// Keeps the newest `most` bars.
void KeepNewest(Json* bars, std::size_t most) {
  std::sort(bars->begin(), bars->end(),
            [](const Json& a, const Json& b) { return a[0].get<double>() < b[0].get<double>(); });
  if (bars->size() <= most) return;
  bars->erase(bars->begin(), bars->end() - static_cast<std::ptrdiff_t>(most));
}

// From the first to the last event of pods whose clock is the same.
struct Reach {
  double first_us = std::numeric_limits<double>::infinity();
  double last_us = 0;

  void Add(const inspection::PodTrace& pod) {
    for (const inspection::TraceEvent& event : pod.events) {
      first_us = std::min(first_us, event.at_us);
      last_us = std::max(last_us, event.end_us());
    }
  }
  double took_us() const { return std::max(0.0, last_us - first_us); }
};

// What is shown of each pod: the same length of each clock, up to the newest event by that clock.
class Windows {
 public:
  Windows(const inspection::JobTrace& trace, double most_us) : clock_of_(trace.pods.size(), 0) {
    for (const inspection::ClockNote& note : trace.clocks) {
      if (note.compared) continue;
      for (const std::size_t pod : note.pods) clock_of_[pod] = reaches_.size();
      reaches_.emplace_back();
    }
    for (std::size_t pod = 0; pod < trace.pods.size(); ++pod)
      reaches_[clock_of_[pod]].Add(trace.pods[pod]);
    for (const Reach& reach : reaches_)
      length_us_ = std::max(length_us_, std::min(most_us, reach.took_us()));
  }

  double length_us() const { return length_us_; }
  double from_us() const { return FromOf(reaches_.front()); }
  Window OfCoordinator() const { return WindowOf(reaches_.front()); }
  Window Of(std::size_t pod) const { return WindowOf(reaches_[clock_of_[pod]]); }

 private:
  double FromOf(const Reach& reach) const { return std::max(0.0, reach.last_us - length_us_); }
  Window WindowOf(const Reach& reach) const { return {FromOf(reach), reach.last_us}; }

  std::vector<std::size_t> clock_of_;                   // by the pod's place in the trace
  std::vector<Reach> reaches_ = std::vector<Reach>(1);  // by clock; the first: the coordinator's
  double length_us_ = 0;
};

struct Place {
  const inspection::PodTrace* pod;
  const inspection::TraceWorker* worker;
  Window window;
};

std::vector<Place> PlacesOf(const inspection::JobTrace& trace, const Windows& windows) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < trace.pods.size(); ++i)
    for (const inspection::TraceWorker& worker : trace.pods[i].workers)
      if (worker.rank >= 0) places.push_back({&trace.pods[i], &worker, windows.Of(i)});
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.worker->rank < b.worker->rank; });
  return places;
}

Json LaneOf(const Place& place, std::size_t bars) {
  const Window& window = place.window;
  Json waits = Json::array(), runs = Json::array(), changes = Json::array(), steps = Json::array();
  for (const inspection::TraceEvent& event : place.pod->events) {
    if (event.process != place.worker->process || !window.Shows(event)) continue;
    const auto row = place.pod->rows.find({event.process, event.row});
    if (row == place.pod->rows.end()) continue;
    const auto add = [&](Json* to, const std::string& what) {
      to->push_back(window.Bar(event));
      to->back().push_back(what);
    };
    if (row->second == "waits") add(&waits, Described(event));
    if (row->second == "operations") add(&runs, Described(event));
    if (row->second == "views" && event.took_us > 0) add(&changes, event.name);
    if (row->second == "steps") steps.push_back(Json::array({window.Moment(event.end_us())}));
  }
  for (Json* list : {&waits, &runs, &changes, &steps}) KeepNewest(list, bars);
  return {{"rank", place.worker->rank},
          {"worker", inspection::WorkerName(*place.pod, *place.worker)},
          {"waits", std::move(waits)},
          {"runs", std::move(runs)},
          {"changes", std::move(changes)},
          {"steps", std::move(steps)}};
}

Json ChangesOf(const inspection::PodTrace* teller, const Window& window, std::size_t most) {
  Json changes = Json::array();
  if (teller == nullptr) return changes;
  std::set<int> workers;
  for (const inspection::TraceWorker& worker : teller->workers) workers.insert(worker.process);
  for (const inspection::TraceEvent& event : teller->events) {
    if (workers.count(event.process) > 0 || !window.Shows(event)) continue;
    changes.push_back(window.Bar(event));
    changes.back().insert(changes.back().end(), {event.name, event.note});
  }
  KeepNewest(&changes, most);
  return changes;
}

// Of a machine that has told nothing no clock matters.
bool HasEvents(const inspection::JobTrace& trace, const std::vector<std::size_t>& pods) {
  return std::any_of(pods.begin(), pods.end(),
                     [&](std::size_t pod) { return !trace.pods[pod].events.empty(); });
}

}  // namespace

Json LanesOf(const inspection::JobTrace& trace, const std::vector<std::string>& missing,
             const LanesLimits& limits) {
  const Windows windows(trace, limits.seconds * 1e6);
  const std::vector<Place> places = PlacesOf(trace, windows);
  const std::size_t shown = std::min(places.size(), limits.lanes);
  Json lanes = Json::array(), late = Json::array(), uncompared = Json::array();
  for (std::size_t i = 0; i < shown; ++i)
    lanes.push_back(LaneOf(places[i], limits.bars / shown / 2));
  for (const inspection::ClockNote& note : trace.clocks)
    if (!note.compared && HasEvents(trace, note.pods)) uncompared.push_back(note.pod);
  for (const inspection::LateRank& rank : trace.late) {
    late.push_back({{"rank", rank.rank},
                    {"worker", rank.worker},
                    {"last", rank.last},
                    {"waitedSeconds", rank.waited_us / 1e6}});
  }
  return {{"from", windows.from_us() / 1000},
          {"ms", Ms(windows.length_us())},
          {"lanes", std::move(lanes)},
          {"changes", ChangesOf(inspection::Teller(trace), windows.OfCoordinator(), limits.bars)},
          {"hidden", places.size() - shown},
          {"operations", trace.operations},
          {"late", std::move(late)},
          {"missing", missing},
          {"uncompared", std::move(uncompared)}};
}

}  // namespace ringmaster::page
