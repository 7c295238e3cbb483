#include "common/option_bounds/option_bounds.h"

#include <iomanip>
#include <sstream>
#include <string>

namespace ringmaster::option_bounds {
namespace {

// Upper bounds from here on are met by mistakes alone, so they are named to nobody else.
constexpr double kBeyondUse = 1e8;

template <class T>
std::string Text(T value) {
  std::ostringstream text;
  text << std::setprecision(15) << value;
  return text.str();
}

// "from 1 to 60", "of at least 1"
template <class T>
std::string Allowed(T least, T most, bool names_most) {
  return names_most ? "from " + Text(least) + " to " + Text(most) : "of at least " + Text(least);
}

template <class T>
CLI::Validator Between(T least, T most, const char* kind) {
  const bool matters = static_cast<double>(most) < kBeyondUse;
  const auto judge = [=](std::string& word) -> std::string {
    T value{};
    const bool is_number = CLI::detail::lexical_cast(word, value);
    if (is_number && value >= least && value <= most) return "";
    const bool too_large = is_number && value > most;
    return "\"" + word + "\" is not " + kind + " " + Allowed(least, most, matters || too_large);
  };
  return {judge, Allowed(least, most, matters)};
}

}  // namespace

CLI::Validator WholeNumber(std::int64_t least, std::int64_t most) {
  return Between(least, most, "a whole number");
}

CLI::Validator Number(double least, double most) { return Between(least, most, "a number"); }

}  // namespace ringmaster::option_bounds
