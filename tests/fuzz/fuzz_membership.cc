// What sidecars, operator and a record tell each other as JSON. What was read can be told on, and
// is read again as the same.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/membership/compact_record.h"
#include "common/membership/message_json.h"
#include "common/membership/state_json.h"
#include "common/membership/view_changes.h"
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

// A change against a view of two pods. What was read is sent on as another text, or the same.
void CheckChange(std::string_view text) {
  std::vector<Candidate> candidates(2);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Pod& pod = candidates[i].pod;
    pod.uid = pod.name = "p" + std::to_string(i);
    pod.address = "10.0.0.1:" + std::to_string(i);
    pod.reads_changes = true;
    candidates[i].workers.push_back({.slot = 0, .incarnation = 1});
  }
  const auto parent = std::make_shared<const View>(BootstrapView(candidates, 1));
  ViewChanges reader, sender;
  reader.Know(parent);
  sender.Know(parent);
  Message message;
  message.value = reader.Decode(text, "");
  if (!message.value) return;
  const std::string told = sender.Encode(message, "p0");
  const ViewPtr again = told.empty() ? nullptr : reader.Decode(told, "");
  if (!again || !(*again == *message.value)) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckChange(text);
  Check(
      text, [](std::string_view given) { return DecodeMessage(given); },
      [](const Message& message) { return EncodeMessage(message); });
  Check(text, DecodeReport, EncodeReport);
  Check(text, DecodeState, EncodeState);
  Check(text, DecodeRecord, EncodeRecord);
  Check(text, DecodeCompactRecord, EncodeCompactRecord);
  Check(text, DecodeView, EncodeView);
  Check(text, DecodeCandidate, EncodeCandidate);
  return 0;
}
