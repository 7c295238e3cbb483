#include "operator/controllers/job_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "common/fields/fields.h"
#include "common/logging/log.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

// Both objects have the same members, except those that are named.
bool SameBut(std::initializer_list<std::string_view> names, const Json& a, const Json& b) {
  if (!a.is_object() || !b.is_object()) return a == b;
  const auto skip = [&names](auto at, const auto& end) {
    while (at != end && std::find(names.begin(), names.end(), at.key()) != names.end()) ++at;
    return at;
  };
  auto of_a = skip(a.begin(), a.end()), of_b = skip(b.begin(), b.end());
  while (of_a != a.end() && of_b != b.end()) {
    if (of_a.key() != of_b.key() || of_a.value() != of_b.value()) return false;
    of_a = skip(++of_a, a.end());
    of_b = skip(++of_b, b.end());
  }
  return of_a == a.end() && of_b == b.end();
}

bool DifferOnlyInStatus(const Json& before, const Json& now) {
  return SameBut({"status", "metadata"}, before, now) &&
         SameBut({"resourceVersion"}, fields::Member(before, "metadata"),
                 fields::Member(now, "metadata"));
}

// The job as it was read, with the status of `now`; null if it has to be read anew.
std::shared_ptr<api::HorovodJob> WithStatusOf(const Json& now, const api::HorovodJob& job,
                                              const Json& before) {
  if (!DifferOnlyInStatus(before, now)) return nullptr;
  api::Status status = api::StatusFromJson(fields::Member(now, "status"));
  if (status.TakenUp() != job.status.TakenUp()) return nullptr;
  auto changed = std::make_shared<api::HorovodJob>(job);
  changed->status = std::move(status);
  changed->resource_version = runtime::MetaField(now, "resourceVersion");
  return changed;
}

}  // namespace

JobReader::Known JobReader::Find(const std::string& key) const {
  const sync::MutexLock lock(&mu_);
  const auto at = known_.find(key);
  return at == known_.end() ? Known() : at->second;
}

tl::expected<JobReader::JobPtr, api::FieldErrors> JobReader::Read(
    const std::string& key, const runtime::ObjectPtr& object) {
  const Known known = Find(key);
  if (known.job != nullptr && known.object == object) return known.job;
  JobPtr job;
  if (known.job != nullptr) job = WithStatusOf(*object, *known.job, *known.object);
  if (job == nullptr) {
    auto parsed = api::ParseHorovodJob(*object, api::UnknownFields::kIgnore);
    if (!parsed) return tl::unexpected(std::move(parsed.error()));
    if (!parsed->ignored_fields.empty()) {
      logging::Warn(
          "fields ignored, is the CRD of a later version than this operator? job={} fields={}", key,
          logging::Value(fmt::format("{}", fmt::join(parsed->ignored_fields, ", "))));
    }
    job = std::make_shared<const api::HorovodJob>(std::move(*parsed));
  }
  const sync::MutexLock lock(&mu_);
  known_.insert_or_assign(key, Known{object, job});
  return job;
}

void JobReader::Forget(const std::string& key) {
  const sync::MutexLock lock(&mu_);
  known_.erase(key);
}

}  // namespace ringmaster::controllers
