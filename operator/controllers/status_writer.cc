#include "operator/controllers/status_writer.h"

#include <utility>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "operator/controllers/metrics.h"

namespace ringmaster::controllers {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

namespace {

// Fields of the status that the API server has not kept, with commas.
std::string Lost(const Json& sent, const Json& written) {
  std::string lost;
  const Json& kept = fields::Member(written, "status");
  for (const auto& [name, value] : sent.items()) {
    if (!kept.contains(name)) lost += (lost.empty() ? "" : ", ") + name;
  }
  return lost;
}

}  // namespace

bool StatusWriter::Write(const api::HorovodJob& job, const Json& object,
                         const api::Status& status) {
  if (!(status == job.status) && !Update(job, object, status)) return false;
  if (metrics_ != nullptr && status.epoch > job.status.epoch) {
    metrics_->Resized(job.ns, job.name, job.status.world_size, status.world_size);
  }
  if (status.state != job.status.state) {
    logging::Info("state of the job changed job={} state={} before={}", job.Key(), status.state,
                  logging::Value(job.status.state));
  }
  return true;
}

bool StatusWriter::Update(const api::HorovodJob& job, Json object, const api::Status& status) {
  object["status"] = api::StatusToJson(status);
  auto written = api_->Update(kube::HorovodJobs(), job.ns, object, "status");
  if (written) {
    const std::string lost = Lost(object["status"], *written);
    if (!lost.empty() && !told_of_lost_fields_.exchange(true)) TellOfLostFields(job, lost);
    jobs_->Observe(std::move(*written));
    return true;
  }
  // On a conflict a newer object is on its way: decide again from that one.
  if (written.error().code != ErrorCode::kConflict &&
      written.error().code != ErrorCode::kNotFound) {
    logging::Warn("status not written job={} error={}", job.Key(),
                  logging::Value(written.error().message));
  }
  return false;
}

void StatusWriter::TellOfLostFields(const api::HorovodJob& job, const std::string& lost) {
  const std::string text =
      "the CRD of HorovodJobs is of an earlier version than the operator: the status of no job "
      "keeps " +
      lost + ", so that what depends on it does not work; upgrade the CRD";
  logging::Warn("{} job={}", text, job.Key());
  events_->EmitEvent(job, {true, "CrdTooOld", text, ""});
}

bool StatusWriter::WriteInvalid(const Json& object, const std::string& why) {
  api::Status status = api::StatusFromJson(object.value("status", Json::object()));
  const auto generation = object.value("/metadata/generation"_json_pointer, std::int64_t{0});
  if (status.state == "Invalid" && status.observed_generation == generation) return true;
  api::HorovodJob job;
  job.name = MetaField(object, "name");
  job.ns = MetaField(object, "namespace");
  job.uid = MetaField(object, "uid");
  status.state = "Invalid";
  status.observed_generation = generation;
  std::erase_if(status.conditions, [](const api::Condition& c) { return c.type == "Created"; });
  status.conditions.push_back(
      {"Created", false, "InvalidSpec", why, api::FormatTime(clock_.wall()), generation});
  if (!Update(job, object, status)) return false;
  events_->EmitEvent(job, {true, "InvalidSpec", why, ""});
  return true;
}

void StatusWriter::WriteRecordUnreadable(const api::HorovodJob& job, const Json& object,
                                         const kube::Error& error) {
  backoff_->Failed(job, Needed::kRecord, error);
  api::Status status = job.status;
  backoff_->Show(job, true, api::FormatTime(clock_.wall()), &status);
  if (status == job.status || !Update(job, object, status)) return;
  events_->EmitEvent(job, {true, "FailedRecord", ProblemText(Needed::kRecord, error), ""});
}

}  // namespace ringmaster::controllers
