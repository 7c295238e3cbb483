#include "operator/cli/table_layout.h"

#include <algorithm>

namespace ringmaster::cli {

std::string Lay(const std::vector<std::vector<std::string>>& rows, std::vector<size_t> widths) {
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text += std::string(widths[i] - row[i].size() + 3, ' ');
    }
    text += "\n";
  }
  return text;
}

}  // namespace ringmaster::cli
