#include "common/membership/state_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/parse.h"
#include "common/fields/reader.h"
#include "common/membership/quorum_loss.h"
#include "common/membership/view_json.h"
#include "common/membership/view_json_internal.h"

namespace ringmaster::membership {

using nlohmann::json;

namespace {

constexpr std::uint64_t kFormat = 1;

// The fields that a member's state and the record have in common.
template <typename State>
json VoterJson(const State& state) {
  json out = {{"format", kFormat}, {"lineage", state.lineage}};
  if (state.view) out["view"] = ToJson(*state.view);
  if (!state.promised.none()) out["promised"] = BallotJson(state.promised);
  if (!state.accepted.none()) out["accepted"] = BallotJson(state.accepted);
  if (state.accepted_value) out["value"] = ToJson(*state.accepted_value);
  return out;
}

template <typename State>
void ReadVoter(fields::Reader* reader, State* state) {
  std::uint64_t format = 0;
  reader->Unsigned("format", &format, true);
  if (reader->ok() && format != kFormat) reader->Fail("format", format, "1");
  reader->Unsigned("lineage", &state->lineage, true);
  ReadViewPtr(reader, "view", &state->view);
  ReadBallot(reader, "promised", &state->promised);
  ReadBallot(reader, "accepted", &state->accepted);
  ReadViewPtr(reader, "value", &state->accepted_value);
  if (!state->accepted.none() && !state->accepted_value) {
    reader->Need("value", "the accepted view");
  }
}

}  // namespace

std::string EncodeState(const PersistentState& state) {
  json out = VoterJson(state);
  out["incarnation"] = state.incarnation;
  out["resigned"] = state.resigned;
  out["stopping"] = state.stopping;
  out["planning"] = state.planning;
  out["ran"] = state.ran;
  return out.dump();
}

tl::expected<PersistentState, std::string> DecodeState(std::string_view text) {
  tl::expected<json, std::string> parsed = fields::Parse(text, "state");
  if (!parsed) return tl::make_unexpected(parsed.error());
  fields::Reader reader(*parsed, "state");
  PersistentState state;
  reader.Unsigned("incarnation", &state.incarnation, true);
  reader.Bool("resigned", &state.resigned, true);
  reader.Bool("stopping", &state.stopping, false);
  reader.Bool("planning", &state.planning, false);
  reader.Bool("ran", &state.ran, false);
  ReadVoter(&reader, &state);
  if (!reader.ok()) return tl::make_unexpected(reader.error());
  return state;
}

std::string EncodeRecord(const QuorumRecord& state) { return VoterJson(state).dump(); }

tl::expected<QuorumRecord, std::string> DecodeRecord(std::string_view text) {
  tl::expected<json, std::string> parsed = fields::Parse(text, "record");
  if (!parsed) return tl::make_unexpected(parsed.error());
  fields::Reader reader(*parsed, "record");
  QuorumRecord state;
  ReadVoter(&reader, &state);
  // A record without a view is one that was made anew after it was deleted, before any view was
  // known: it looks for the first view of a later lineage.
  if (reader.ok() && !QuorumLost(state)) reader.Need("view", "a view");
  if (!reader.ok()) return tl::make_unexpected(reader.error());
  return state;
}

}  // namespace ringmaster::membership
