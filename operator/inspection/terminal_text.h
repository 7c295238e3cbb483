// What may be written to a terminal, and how much of it fits into a line there. Pure.
#pragma once

#include <cstddef>
#include <string>

namespace ringmaster::inspection {

// A terminal obeys controls: ASCII's, and those of Latin 1 as UTF-8 has them (0xC2 0x80 to 0xC2
// 0x9F). Each becomes a question mark.
void ReplaceControls(std::string* text);

// The columns that a terminal needs for it, at most: a character that some terminals draw twice as
// wide as others counts twice.
std::size_t Columns(const std::string& text);

// As many whole characters from its beginning as fit into so many columns.
std::string CutToColumns(const std::string& text, std::size_t columns);

}  // namespace ringmaster::inspection
