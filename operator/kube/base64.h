#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::kube {

std::string EncodeBase64(std::string_view bytes);
// Line breaks are skipped; nullopt for anything else that isn't base64.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace ringmaster::kube
