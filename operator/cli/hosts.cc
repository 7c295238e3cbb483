#include "operator/cli/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <set>
#include <sstream>

namespace ringmaster::cli {
namespace {

constexpr int kMostSlots = 1024;

// The error about a word, for people.
tl::unexpected<std::string> Wrong(const std::string& word, const std::string& why) {
  return tl::unexpected(fmt::format("\"{}\" {}", word, why));
}

// `least`: the smallest allowed number of slots.
tl::expected<Host, std::string> ParseHost(const std::string& word, int slots, int least) {
  const size_t colon = word.rfind(':');
  Host host{word.substr(0, colon), slots};
  if (colon != std::string::npos) {
    const std::string number = word.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), host.slots);
    if (error != std::errc() || end != number.data() + number.size() || host.slots < least ||
        host.slots > kMostSlots) {
      return Wrong(word, fmt::format("has \"{}\" slots", number));
    }
  }
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("._-@").find(static_cast<char>(c)) != std::string_view::npos;
  };
  // A name that begins with "-" would be an option of ssh.
  if (host.name.empty() || host.name[0] == '-' ||
      !std::all_of(host.name.begin(), host.name.end(), allowed)) {
    return Wrong(word, "names no host");
  }
  return host;
}

tl::unexpected<Failure> WrongOption(const std::string& what) {
  return Fail(ExitCode::kUsage,
              fmt::format("--hosts: {}; allowed is HOST:SLOTS,..., such as a:2,user@b:4, with 1 to "
                          "{} slots",
                          what, kMostSlots));
}

std::string Trimmed(const std::string& line) {
  const char* const space = " \t\r";
  const size_t begin = line.find_first_not_of(space);
  return begin == std::string::npos ? ""
                                    : line.substr(begin, line.find_last_not_of(space) - begin + 1);
}

}  // namespace

Outcome<std::vector<Host>> ParseHosts(const std::string& text) {
  std::vector<Host> hosts;
  std::set<std::string> names;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    auto host = ParseHost(text.substr(at, comma - at), 1, 1);
    if (!host) return WrongOption(host.error());
    if (!names.insert(host->name).second)
      return WrongOption(Wrong(host->name, "is named twice").value());
    hosts.push_back(std::move(*host));
    at = comma + 1;
  }
  return hosts;
}

Outcome<std::vector<Host>> ParseHostLines(const std::string& text, int slots) {
  std::vector<Host> hosts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = Trimmed(line);
    if (line.empty()) continue;
    auto host = ParseHost(line, slots, 0);
    if (!host) {
      return Fail(
          ExitCode::kUsage,
          fmt::format("{}; allowed is a line HOST or HOST:SLOTS each, such as b or user@b:4, "
                      "with 0 to {} slots",
                      host.error(), kMostSlots));
    }
    std::erase_if(hosts, [&](const Host& other) { return other.name == host->name; });
    if (host->slots > 0) hosts.push_back(std::move(*host));
  }
  return hosts;
}

int SlotsOf(const std::vector<Host>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const Host& host) { return sum + host.slots; });
}

std::string NodeNameOf(const Host& host, int index) {
  std::string name;
  for (const unsigned char c : host.name.substr(host.name.find('@') + 1)) {
    name += std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '-';
  }
  while (!name.empty() && name.front() == '-') name.erase(0, 1);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return fmt::format("{}{}{}", name.substr(0, 40), name.empty() ? "node-" : "-", index);
}

Layout LayOut(const std::vector<Host>& hosts, int np, bool elastic) {
  Layout layout;
  if (elastic) {
    layout.pods = np;
    for (const Host& host : hosts) layout.pods_of_host.push_back(host.slots);
    return layout;
  }
  int size = 0;
  for (int left = np; const Host& host : hosts) {
    const int used = std::min(host.slots, left);
    left -= used;
    size = std::gcd(size, used);
    layout.pods_of_host.push_back(used);
  }
  layout.slots_per_pod = std::max(1, size);
  layout.pods = np / layout.slots_per_pod;
  for (int& pods : layout.pods_of_host) pods /= layout.slots_per_pod;
  return layout;
}

}  // namespace ringmaster::cli
