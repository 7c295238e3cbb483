// How much of a text fits into a line of a terminal. Pure.
#pragma once

#include <cstddef>
#include <string>

namespace ringmaster::inspection {

// The most columns that a terminal needs for the text: a character that some terminals draw with
// double width counts twice.
std::size_t Columns(const std::string& text);

// As many whole characters from the beginning as fit into `columns` columns.
std::string CutToColumns(const std::string& text, std::size_t columns);

}  // namespace ringmaster::inspection
