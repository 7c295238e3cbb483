// Lays rows out as columns of text.
#pragma once

#include <string>
#include <vector>

namespace ringmaster::cli {

// Each column is as wide as its longest cell, or as `widths` says if that is more.
std::string Lay(const std::vector<std::vector<std::string>>& rows, std::vector<size_t> widths = {});

}  // namespace ringmaster::cli
