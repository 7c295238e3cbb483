// What sidecars, operator and a record tell each other as JSON. What was read can be told on, and
// is read again as the same.
#include <cstdint>
#include <cstdlib>

#include "common/membership/compact_record.h"
#include "common/membership/message_json.h"
#include "common/membership/state_json.h"
#include "common/membership/view_json.h"

using namespace ringmaster::membership;  // NOLINT: nothing else is here

template <typename Decode, typename Encode>
void Check(std::string_view text, Decode decode, Encode encode) {
  const auto value = decode(text);
  if (!value) return;
  const std::string told = encode(*value);
  const auto again = decode(told);
  if (!again || encode(*again) != told) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(text, DecodeMessage, EncodeMessage);
  Check(text, DecodeReport, EncodeReport);
  Check(text, DecodeState, EncodeState);
  Check(text, DecodeRecord, EncodeRecord);
  Check(text, DecodeCompactRecord, EncodeCompactRecord);
  Check(text, DecodeView, EncodeView);
  Check(text, DecodeCandidate, EncodeCandidate);
  return 0;
}
