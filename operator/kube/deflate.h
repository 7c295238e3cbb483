// Bytes made smaller for an object that may not be large (zlib's format), and back. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::kube {

std::string Deflate(std::string_view bytes);
// nullopt: not such bytes, or more than `most` of them come out.
std::optional<std::string> Inflate(std::string_view bytes, std::size_t most);

}  // namespace ringmaster::kube
