#include "collectives/timeline/trace_text.h"

#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

namespace ringmaster::timeline {
namespace {

using Micro = std::chrono::duration<double, std::micro>;

// In the order of Row; rows of tensors come after them.
constexpr const char* kRowNames[] = {"steps", "rounds", "waits", "operations", "views"};
constexpr int kFirstTensorRow = 10;
constexpr int kOtherTensors = kFirstTensorRow - 1;

// Writes a decimal point, whatever locale the script has set.
std::string Decimal(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 3).ptr;
  return {text, end};
}

}  // namespace

TraceText::TraceText(int process)
    : process_(process), steady_(Clock::now()), wall_(std::chrono::system_clock::now()) {}

std::string TraceText::Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string TraceText::Rows() const {
  std::string rows;
  for (size_t row = 0; row < std::size(kRowNames); ++row)
    rows += Introduction(static_cast<int>(row), kRowNames[row]);
  return rows;
}

std::string TraceText::Introduction(int row, const std::string& name) const {
  return ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" + std::to_string(process_) +
         ",\"tid\":" + std::to_string(row) + ",\"args\":{\"name\":" + Quoted(name) + "}}";
}

int TraceText::RowOf(const Event& event, std::string* out) {
  if (event.row != Row::kTensor) return static_cast<int>(event.row);
  const auto known = rows_.find(event.name);
  if (known != rows_.end()) return known->second;
  if (rows_.size() == kMostTensorRows) {
    *out += Introduction(kOtherTensors, "other tensors");
    rows_.emplace(std::string(), kOtherTensors);  // so that rows_ is larger, and this is done once
  }
  if (rows_.size() > kMostTensorRows) return kOtherTensors;
  const int row = kFirstTensorRow + static_cast<int>(rows_.size());
  rows_.emplace(event.name, row);
  *out += Introduction(row, event.name);
  return row;
}

std::string TraceText::Times(const Event& event) const {
  const double begin = std::chrono::duration_cast<Micro>(wall_.time_since_epoch()).count() +
                       Micro(event.begin - steady_).count();
  if (event.end == event.begin) return "\"ph\":\"i\",\"s\":\"t\",\"ts\":" + Decimal(begin);
  return "\"ph\":\"X\",\"ts\":" + Decimal(begin) +
         ",\"dur\":" + Decimal(Micro(event.end - event.begin).count());
}

std::string TraceText::Of(const Event& event) {
  std::string text;
  const int row = RowOf(event, &text);
  std::string name = event.what;
  if (event.row != Row::kTensor && !event.name.empty()) name += " " + event.name;
  text += ",\n{\"name\":" + Quoted(name) + "," + Times(event) +
          ",\"pid\":" + std::to_string(process_) + ",\"tid\":" + std::to_string(row) +
          ",\"args\":{";
  const char* separator = "";
  for (const Event::Number& number : event.numbers) {
    if (number.key == nullptr) continue;
    text += std::string(separator) + "\"" + number.key + "\":" + std::to_string(number.value);
    separator = ",";
  }
  if (row == kOtherTensors) text += std::string(separator) + "\"tensor\":" + Quoted(event.name);
  return text + "}}";
}

}  // namespace ringmaster::timeline
