// Reads whole files: kubeconfigs, certificates, tokens.
//
// Thread rule: a free function.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <tl/expected.hpp>

namespace ringmaster::kube {

// A directory is an error, too, and does not read as an empty file.
tl::expected<std::string, std::error_code> ReadFile(const std::filesystem::path& file);

}  // namespace ringmaster::kube
