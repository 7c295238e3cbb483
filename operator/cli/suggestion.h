// "did you mean": finds the word that was probably meant. Pure.
#pragma once

#include <string>
#include <vector>

namespace ringmaster::cli {

// The candidate that `word` begins, or that differs from `word` by the fewest missing, additional,
// wrong or swapped letters; empty if none is similar.
std::string Nearest(const std::string& word, const std::vector<std::string>& candidates);

// "; did you mean X?", or an empty text.
std::string DidYouMean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace ringmaster::cli
