// Compresses bytes for an object of limited size (zlib's format), and back. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::kube {

std::string Deflate(std::string_view bytes);
// nullopt if the bytes are not in this format, or if they expand to more than `most` bytes.
std::optional<std::string> Inflate(std::string_view bytes, std::size_t most);

}  // namespace ringmaster::kube
