#include "operator/api/field_error.h"

#include <algorithm>

namespace ringmaster::api {

std::size_t CountWrong(const FieldErrors& errors) {
  return static_cast<std::size_t>(std::count_if(
      errors.begin(), errors.end(), [](const FieldError& error) { return !error.unknown_field; }));
}

std::string ToString(const FieldErrors& errors) {
  std::string text;
  for (const FieldError& error : errors) {
    if (!text.empty()) text += "\n";
    text += error.ToString();
  }
  return text;
}

}  // namespace ringmaster::api
