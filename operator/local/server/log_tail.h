// `tailLines` of a pod's log: where the last lines of a file begin.
//
// Thread rule: free functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace ringmaster::local {

// Of a query; empty for what is no number, which is then as if it weren't there.
std::optional<uint64_t> ParseTailLines(const std::string& text);

// Not before `start`, of what stands before `end`. A last line without an end counts as one.
uint64_t OffsetOfLastLines(const std::filesystem::path& file, uint64_t start, uint64_t lines,
                           uint64_t end = UINT64_MAX);

}  // namespace ringmaster::local
