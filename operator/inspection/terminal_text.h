// Which text may be written to a terminal, and how much of it fits into a line. Pure.
#pragma once

#include <cstddef>
#include <string>

namespace ringmaster::inspection {

// Replaces control characters, which a terminal would obey, by question marks: those of ASCII, and
// those of Latin 1 in UTF-8 (0xC2 0x80 to 0xC2 0x9F).
void ReplaceControls(std::string* text);

// The most columns that a terminal needs for the text: a character that some terminals draw with
// double width counts twice.
std::size_t Columns(const std::string& text);

// As many whole characters from the beginning as fit into `columns` columns.
std::string CutToColumns(const std::string& text, std::size_t columns);

}  // namespace ringmaster::inspection
