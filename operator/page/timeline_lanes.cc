#include "operator/page/timeline_lanes.h"

#include <algorithm>
#include <cmath>
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
  const double from_us_;
  const double until_us_;
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

struct Place {
  const inspection::PodTrace* pod;
  const inspection::TraceWorker* worker;
};

std::vector<Place> PlacesOf(const inspection::JobTrace& trace) {
  std::vector<Place> places;
  for (const inspection::PodTrace& pod : trace.pods)
    for (const inspection::TraceWorker& worker : pod.workers)
      if (worker.rank >= 0) places.push_back({&pod, &worker});
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.worker->rank < b.worker->rank; });
  return places;
}

Json LaneOf(const Place& place, const Window& window, std::size_t bars) {
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

}  // namespace

Json LanesOf(const inspection::JobTrace& trace, const std::vector<std::string>& missing,
             const LanesLimits& limits) {
  const double until = trace.last_us();
  const double from = std::max(trace.first_us(), until - limits.seconds * 1e6);
  const Window window(from, until);
  const std::vector<Place> places = PlacesOf(trace);
  const std::size_t shown = std::min(places.size(), limits.lanes);
  Json lanes = Json::array(), late = Json::array();
  for (std::size_t i = 0; i < shown; ++i)
    lanes.push_back(LaneOf(places[i], window, limits.bars / shown / 2));
  for (const inspection::LateRank& rank : trace.late) {
    late.push_back({{"rank", rank.rank},
                    {"worker", rank.worker},
                    {"last", rank.last},
                    {"waitedSeconds", rank.waited_us / 1e6}});
  }
  return {{"from", from / 1000},
          {"ms", Ms(until - from)},
          {"lanes", std::move(lanes)},
          {"changes", ChangesOf(inspection::Teller(trace), window, limits.bars)},
          {"hidden", places.size() - shown},
          {"operations", trace.operations},
          {"late", std::move(late)},
          {"missing", missing}};
}

}  // namespace ringmaster::page
