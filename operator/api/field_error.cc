#include "operator/api/field_error.h"

namespace ringmaster::api {

std::string ToString(const FieldErrors& errors) {
  std::string text;
  for (const FieldError& error : errors) {
    if (!text.empty()) text += "\n";
    text += error.ToString();
  }
  return text;
}

}  // namespace ringmaster::api
