// Lists and amounts as people read them. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ringmaster::planner {

bool Contains(const std::vector<std::string>& texts, const std::string& text);
std::string Plural(std::size_t n, const std::string& noun);
// "a, b, c, d and 996 more": a thousand pods wait for the same thing as one.
std::string Names(const std::vector<std::string>& names);
std::string Listed(const std::vector<std::string>& texts, const char* between);

}  // namespace ringmaster::planner
