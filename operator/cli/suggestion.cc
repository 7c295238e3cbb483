#include "operator/cli/suggestion.h"

#include <algorithm>

namespace ringmaster::cli {
namespace {

// Damerau-Levenshtein distance: swapping two neighbouring letters counts as one mistake.
size_t Mistakes(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t wrong = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + wrong});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t kShortest = 3;  // the shortest beginning that identifies a word
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const bool begun = word.size() >= kShortest && candidate.starts_with(word);
    const size_t mistakes = begun ? 1 : Mistakes(word, candidate);
    if (mistakes >= best || mistakes >= candidate.size()) continue;
    best = mistakes;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace ringmaster::cli
