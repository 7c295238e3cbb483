#include "common/membership/compact_record.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "common/fields/parse.h"
#include "common/membership/compact_view.h"
#include "common/membership/state_json.h"
#include "common/membership/view_json_internal.h"

namespace ringmaster::membership {
namespace {

using nlohmann::json;

// Higher than the format of the plain form, whose reader refuses this one.
constexpr std::uint64_t kCompactFormat = 2;

}  // namespace

std::string EncodeCompactRecord(const QuorumRecord& state) {
  json out = {{"format", kCompactFormat}, {"lineage", state.lineage}};
  if (!state.promised.none()) out["promised"] = BallotJson(state.promised);
  if (!state.accepted.none()) out["accepted"] = BallotJson(state.accepted);
  if (state.view) out["view"] = CompactView(*state.view, nullptr);
  if (state.accepted_value) out["value"] = CompactView(*state.accepted_value, state.view.get());
  return out.dump();
}

tl::expected<QuorumRecord, std::string> DecodeCompactRecord(std::string_view text) {
  tl::expected<json, std::string> record = fields::Parse(text, "record");
  if (!record) return tl::make_unexpected(record.error());
  if (!record->is_object() || record->value("format", json()) != json(kCompactFormat)) {
    return tl::make_unexpected(std::string("record.format: only 2 is a compact record"));
  }
  (*record)["format"] = 1;
  const bool has_view = record->contains("view"), has_value = record->contains("value");
  if ((has_view && !ExpandView(&(*record)["view"], json())) ||
      (has_value && !ExpandView(&(*record)["value"], has_view ? (*record)["view"] : json()))) {
    return tl::make_unexpected(std::string("record: a run of entries is not one of the view's"));
  }
  return DecodeRecord(record->dump());
}

}  // namespace ringmaster::membership
