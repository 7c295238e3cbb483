#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::kube {

std::string EncodeBase64(std::string_view bytes);
// Skips line breaks; nullopt for anything else that isn't base64.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace ringmaster::kube
