#include "operator/scheduler/quantity.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::scheduler {

double ParseQuantity(const nlohmann::json& quantity) {
  if (quantity.is_number()) return std::max(0.0, quantity.get<double>());
  if (!quantity.is_string()) return 0;
  static const std::map<std::string, double> kUnits = {
      {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},   {"k", 1e3},     {"M", 1e6},
      {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},   {"Ki", 0x1p10}, {"Mi", 0x1p20},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  const std::string text = quantity.get<std::string>();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);  // accepts "1e3", as Kubernetes does
  const auto unit = kUnits.find(end);
  return unit == kUnits.end() || !(number > 0) ? 0 : number * unit->second;
}

}  // namespace ringmaster::scheduler
