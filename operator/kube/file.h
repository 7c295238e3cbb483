// Files that are read whole: kubeconfigs, certificates, tokens.
//
// Thread rule: a free function.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <tl/expected.hpp>

namespace ringmaster::kube {

// A directory, too, is an error and not an empty text.
tl::expected<std::string, std::error_code> ReadFile(const std::filesystem::path& file);

}  // namespace ringmaster::kube
