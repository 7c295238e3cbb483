// What a ProvisioningRequest says, as the operator reads it. Whoever may write one in a job's
// namespace chooses its bytes: no number overflows, and nothing of it controls a terminal.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/fields/parse.h"
#include "operator/provisioning/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto facts =
      ringmaster::provisioning::ReadRequest(ringmaster::fields::ParseOrDiscard(text));
  if (facts.count < 0 || facts.attempt < 1) std::abort();
  const auto controls = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(facts.why.begin(), facts.why.end(), controls)) std::abort();
  if (facts.why.size() > 1'000) std::abort();
  return 0;
}
