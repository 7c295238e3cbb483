// Text that others wrote, made fit for a line that people read. Pure.
#pragma once

#include <cstddef>
#include <string>

namespace ringmaster::plain_text {

// As many whole UTF-8 characters from the beginning as fit into `most` bytes.
std::string Cut(std::string text, std::size_t most);

// The same, and three dots where something was cut off.
std::string CutWithDots(std::string text, std::size_t most);

// Replaces control characters, which a terminal would obey, by question marks: those of ASCII, and
// those of Latin 1 in UTF-8 (0xC2 0x80 to 0xC2 0x9F).
std::string WithoutControls(std::string text);

}  // namespace ringmaster::plain_text
