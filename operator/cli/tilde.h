// Paths that begin with "~/", which not every shell expands where they stand behind `--option=`.
// Pure.
#pragma once

#include <string>

namespace ringmaster::cli {

// `path` below `home` if it is "~" or begins with "~/"; else, or if `home` is empty, as it is.
inline std::string ExpandTilde(const std::string& path, const std::string& home) {
  const bool below = path == "~" || path.starts_with("~/");
  return below && !home.empty() ? home + path.substr(1) : path;
}

}  // namespace ringmaster::cli
