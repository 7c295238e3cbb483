#include "common/plain_text/plain_text.h"

namespace ringmaster::plain_text {

std::string Cut(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  text.resize(end);
  return text;
}

std::string CutWithDots(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  return Cut(std::move(text), most) + "...";
}

std::string WithoutControls(std::string text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool latin = i > 0 && byte(i - 1) == 0xC2 && byte(i) >= 0x80 && byte(i) < 0xA0;
    if (latin) text[i - 1] = '?';
    if (latin || byte(i) < 0x20 || byte(i) == 0x7F) text[i] = '?';
  }
  return text;
}

}  // namespace ringmaster::plain_text
