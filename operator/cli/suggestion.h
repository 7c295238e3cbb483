// "did you mean": the word that somebody probably meant. Pure.
#pragma once

#include <string>
#include <vector>

namespace ringmaster::cli {

// The candidate that differs from `word` by the fewest letters that are missing, too many, wrong or
// exchanged with their neighbour, or that begins with it; empty: none is near.
std::string Nearest(const std::string& word, const std::vector<std::string>& candidates);

// "; did you mean X?", or nothing.
std::string DidYouMean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace ringmaster::cli
