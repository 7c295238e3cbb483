#include "operator/kube/dns_names.h"

#include <algorithm>

namespace ringmaster::kube {
namespace {

bool IsLowerAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

bool IsDnsName(const std::string& text) {
  return !text.empty() && text.size() <= 253 && IsLowerAlphanumeric(text.front()) &&
         IsLowerAlphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLowerAlphanumeric(c) || c == '-' || c == '.';
         });
}

bool IsDnsLabel(const std::string& text) {
  return text.size() <= 63 && text.find('.') == std::string::npos && IsDnsName(text);
}

}  // namespace ringmaster::kube
