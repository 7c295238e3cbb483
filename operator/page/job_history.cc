#include "operator/page/job_history.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/fields/fields.h"
#include "operator/inspection/rank_times.h"
#include "operator/inspection/text_format.h"
#include "operator/inspection/troubles.h"

namespace ringmaster::page {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostPastValues = 8;  // as many as a sidecar keeps

std::string StateOf(const Json& job) {
  const std::string state = fields::TextAt(job, "/status/state");
  return state.empty() ? "Pending" : state;
}

Json RankJson(const inspection::RankTimes& times) {
  Json json = {
      {"rank", times.rank}, {"pod", times.pod}, {"worker", times.worker}, {"step", times.step}};
  const bool known = times.between.seconds > 0;
  const auto share = [&](double seconds) { return known ? Json(times.Share(seconds)) : Json(); };
  json["computes"] = known ? Json(1 - times.Share(times.between.blocked)) : Json();
  json["blocked"] = share(times.between.blocked);
  json["waiting"] = share(times.between.waiting);
  json["running"] = share(times.between.running);
  json["bytesPerSecond"] =
      known ? Json(static_cast<double>(times.between.bytes) / times.between.seconds) : Json();
  return json;
}

// What a person reads of each change, and its phases in seconds; the newest first.
Json Changes(const inspection::SidecarStatus& status, std::size_t most) {
  Json changes = Json::array();
  for (auto rebuild = status.rebuilds.rbegin();
       rebuild != status.rebuilds.rend() && changes.size() < most; ++rebuild) {
    changes.push_back({{"view", inspection::ViewName(rebuild->epoch)},
                       {"t", rebuild->at_unix_ms},
                       {"reason", rebuild->reason},
                       {"planned", rebuild->planned},
                       {"workers", rebuild->world_size},
                       {"left", rebuild->left},
                       {"joined", rebuild->joined},
                       {"complete", rebuild->complete},
                       {"seconds", job::ToJson(rebuild->seconds)},
                       {"total", job::TotalSeconds(rebuild->seconds)},
                       {"stepsLost", rebuild->steps_lost}});
  }
  return changes;
}

Json StragglerJson(const std::vector<inspection::RankTimes>& ranks) {
  const auto straggler = inspection::FindStraggler(ranks);
  if (!straggler) return nullptr;
  return {{"rank", straggler->rank.rank},
          {"worker", straggler->rank.worker},
          {"waits", straggler->rank.Waits()},
          {"othersWait", straggler->least_of_others}};
}

// Seconds that a step took; null: none has ended since the look before.
Json PaceOf(const inspection::RankTimes& times) {
  if (times.steps == 0 || times.between.seconds <= 0) return nullptr;
  return times.between.seconds / static_cast<double>(times.steps);
}

// The figures of each rank stand in its own place: one that has not answered moves no other.
struct ByRank {
  Json computes = Json::array();
  Json paces = Json::array();
  Json untold = Json::array();
};

ByRank FiguresByRank(const std::vector<inspection::RankTimes>& ranks, std::size_t in_view,
                     std::size_t most_ranks) {
  std::size_t places = in_view;
  for (const inspection::RankTimes& times : ranks)
    places = std::max(places, static_cast<std::size_t>(times.rank) + 1);
  places = std::min(places, most_ranks);
  ByRank figures;
  figures.computes = figures.paces = Json(places, nullptr);
  std::vector<bool> told(places, false);
  for (const inspection::RankTimes& times : ranks) {
    const auto place = static_cast<std::size_t>(times.rank);
    if (place >= places) continue;
    told[place] = true;
    if (times.between.seconds > 0) figures.computes[place] = 1 - times.Share(times.between.blocked);
    figures.paces[place] = PaceOf(times);
  }
  for (std::size_t place = 0; place < places; ++place)
    if (!told[place]) figures.untold.push_back(place);
  return figures;
}

// Of a look that no sidecar has answered: nothing is known, which is not the same as nothing done.
Json UntoldSample(std::int64_t unix_ms) {
  return {{"t", unix_ms},
          {"workers", nullptr},
          {"step", nullptr},
          {"stepSeconds", nullptr},
          {"samplesPerSecond", nullptr},
          {"values", Json::object()},
          {"computes", Json::array()},
          {"paces", Json::array()},
          {"untold", Json::array()}};
}

Json Sample(const inspection::Inspection& look, const std::vector<inspection::RankTimes>& ranks,
            std::size_t most_ranks, std::int64_t unix_ms) {
  const inspection::SidecarStatus* teller = inspection::Teller(look);
  if (teller == nullptr) return UntoldSample(unix_ms);
  uint64_t step = teller->step;
  double samples_per_second = 0;
  for (const auto& [pod, status] : look.answers) samples_per_second += status.samples_per_second;
  for (const inspection::RankTimes& times : ranks) step = std::max(step, times.step);
  const auto seconds = inspection::StepSeconds(ranks);
  ByRank figures = FiguresByRank(ranks, teller->ranks.size(), most_ranks);
  return {{"t", unix_ms},
          {"workers", teller->ranks.size()},
          {"step", step},
          {"stepSeconds", seconds ? Json(*seconds) : Json()},
          {"samplesPerSecond", samples_per_second},
          {"values", teller->values},
          {"computes", std::move(figures.computes)},
          {"paces", std::move(figures.paces)},
          {"untold", std::move(figures.untold)}};
}

// Turns a row of a sidecar's history into a sample; `before` is the preceding sample, or null.
Json PastSample(const Json& row, const Json& names, const Json& before) {
  const auto number = [&row](std::size_t at) { return row[at].get<double>(); };
  Json values = Json::object();
  for (std::size_t i = 0; i < std::min({kMostPastValues, names.size(), row.size() - 3}); ++i) {
    if (names[i].is_string() && row[i + 3].is_number())
      values[inspection::ValueName(names[i])] = row[i + 3];
  }
  const double steps = before.is_null() ? 0 : number(2) - before[2].get<double>();
  const double seconds = before.is_null() ? 0 : (number(0) - before[0].get<double>()) / 1e3;
  return {{"t", row[0]},
          {"workers", row[1]},
          {"step", row[2]},
          {"stepSeconds", steps > 0 && seconds > 0 ? Json(seconds / steps) : Json()},
          {"samplesPerSecond", 0.0},
          {"values", std::move(values)},
          {"computes", Json::array()},
          {"paces", Json::array()},
          {"untold", Json::array()}};
}

bool IsRow(const Json& row) {
  return row.is_array() && row.size() >= 3 && row[0].is_number() && row[1].is_number() &&
         row[2].is_number();
}

}  // namespace

void JobHistory::Add(inspection::Inspection now, std::int64_t unix_ms) {
  const auto ranks = inspection::TimesByRank(last_, now);
  ranks_ = Json::array();
  for (const inspection::RankTimes& times : ranks) {
    if (ranks_.size() == limits_.listed) break;
    ranks_.push_back(RankJson(times));
  }
  straggler_ = StragglerJson(ranks);
  if (const inspection::SidecarStatus* teller = inspection::Teller(now); teller != nullptr)
    changes_ = Changes(*teller, limits_.changes);
  samples_.push_back(Sample(now, ranks, limits_.ranks, unix_ms));
  if (samples_.size() > limits_.samples) samples_.pop_front();
  last_ = std::move(now);
}

void JobHistory::SetPast(const Json& history) {
  std::vector<const Json*> rows;
  for (const Json& row : fields::List(history, "samples")) {
    const bool is_before = IsRow(row) && (samples_.empty() || row[0] < samples_.front()["t"]);
    if (is_before) rows.push_back(&row);
  }
  const Json& names = fields::List(history, "values");
  const std::size_t each = std::max<std::size_t>(1, (rows.size() + limits_.past) / limits_.past);
  past_.clear();
  for (std::size_t i = 0; i < rows.size(); i += each)
    past_.push_back(PastSample(*rows[i], names, i < each ? Json() : *rows[i - each]));
}

Json JobHistory::Samples() const {
  Json samples = past_;
  for (const Json& sample : samples_) samples.push_back(sample);
  return samples;
}

Json Summary(const Json& job) {
  Json troubles = Json::array();
  for (const inspection::Trouble& trouble : inspection::TroublesOf(job)) {
    troubles.push_back({{"type", trouble.type},
                        {"reason", trouble.reason},
                        {"message", trouble.message},
                        {"since", trouble.since}});
  }
  return {{"namespace", fields::TextAt(job, "/metadata/namespace")},
          {"name", fields::TextAt(job, "/metadata/name")},
          {"uid", fields::TextAt(job, "/metadata/uid")},
          {"state", StateOf(job)},
          {"wanted", fields::At(job, "/spec/worker/replicas")},
          {"workers", fields::At(job, "/status/worldSize")},
          {"troubles", std::move(troubles)}};
}

Json JobHistory::Now() const {
  const inspection::SidecarStatus* teller = inspection::Teller(last_);
  Json pods = Json::array();
  for (const Json& pod : last_.pods) {
    pods.push_back({{"name", fields::TextAt(pod, "/metadata/name")},
                    {"phase", fields::TextAt(pod, "/status/phase")},
                    {"node", fields::TextAt(pod, "/spec/nodeName")}});
  }
  Json now = Summary(last_.job);
  now["view"] = teller == nullptr || teller->epoch == 0 ? "" : inspection::ViewName(teller->epoch);
  now["pods"] = std::move(pods);
  now["ranks"] = ranks_;
  now["slots"] = fields::IntegerAt(last_.job, "/spec/slotsPerWorker", 1);
  now["straggler"] = straggler_;
  now["changes"] = changes_;
  const Json& status = fields::Member(last_.job, "status");
  for (const char* count : {"stepsLost", "restartsFromCheckpoint"})
    now[count] = fields::Integer(status, count);
  return now;
}

}  // namespace ringmaster::page
