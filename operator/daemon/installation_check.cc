#include "operator/daemon/installation_check.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <iostream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "common/http/fetch.h"
#include "common/option_bounds/option_bounds.h"
#include "operator/app/setting_texts.h"

namespace ringmaster::daemon {
namespace {

using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kOneTry{5}, kBetweenTries{1};

// Empty: the address is none, or the name is not known.
tcp::resolver::results_type Resolve(const std::string& address) {
  const auto where = app::ParseHostPort(address);
  if (!where) return {};
  asio::io_context loop(1);
  tcp::resolver resolver(loop);
  std::error_code unknown;
  return resolver.resolve(where->host, std::to_string(where->port), unknown);
}

// The whole answer to GET /metrics of whichever replica the Service picks.
std::optional<std::string> Metrics(const std::string& address) {
  for (const auto& found : Resolve(address)) {
    const tcp::endpoint at = found.endpoint();
    const std::string ip = at.address().to_string();
    const std::string text =
        fmt::format(fmt::runtime(at.address().is_v6() ? "[{}]:{}" : "{}:{}"), ip, at.port());
    if (auto body = http::Fetch(text, "/metrics", {.deadline = kOneTry})) return body;
  }
  return std::nullopt;
}

bool IsOpen(const std::string& address) {
  asio::io_context loop(1);
  tcp::socket socket(loop);
  bool open = false;
  asio::async_connect(socket, Resolve(address),
                      [&](std::error_code error, const tcp::endpoint&) { open = !error; });
  loop.run_for(kOneTry);
  return open;
}

std::vector<std::string> LinesThatBegin(const std::string& text, const std::string& with) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(with)) lines.push_back(line);
  }
  return lines;
}

// The metrics of a replica that leads.
tl::expected<std::string, std::string> AwaitLeader(const InstallationToCheck& installation) {
  const auto until = Clock::now() + installation.wait;
  for (;;) {
    const auto text = Metrics(installation.metrics);
    if (text && !LinesThatBegin(*text, "ringmaster_operator_leader 1").empty()) return *text;
    if (Clock::now() >= until) {
      return tl::unexpected(
          text ? fmt::format("no replica leads after {} s", installation.wait.count())
               : installation.metrics + " does not serve /metrics");
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace

tl::expected<std::string, std::string> CheckInstallation(const InstallationToCheck& installation) {
  std::string found;
  if (!installation.metrics.empty()) {
    const auto metrics = AwaitLeader(installation);
    if (!metrics) return metrics;
    found += "a replica leads\n";
    for (const std::string& cache : LinesThatBegin(*metrics, "ringmaster_operator_cache_synced{")) {
      if (cache.ends_with(" 0")) return tl::unexpected("not listed yet: " + cache);
    }
    found += "its caches are filled\n";
  }
  if (!IsOpen(installation.grpc)) return tl::unexpected(installation.grpc + " is not open");
  return found + "sidecars can dial " + installation.grpc + "\n";
}

int RunInstallationCheck(int argc, char** argv) {
  CLI::App cli("Checks an installed operator through its Services.", "ringmaster-operator check");
  InstallationToCheck installation;
  int seconds = static_cast<int>(installation.wait.count());
  cli.add_option("--grpc", installation.grpc, "HOST:PORT that sidecars dial")->required();
  cli.add_option("--metrics", installation.metrics, "HOST:PORT that serves /metrics without TLS");
  cli.add_option("--wait", seconds, "how many seconds a replica may take until it leads")
      ->check(option_bounds::WholeNumber(0, 3600))
      ->capture_default_str();
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? 0 : 2;
  }
  installation.wait = std::chrono::seconds(seconds);
  const auto found = CheckInstallation(installation);
  if (!found) {
    std::cerr << "ringmaster-operator check: " << found.error() << "\n";
    return 1;
  }
  std::cout << *found;
  return 0;
}

}  // namespace ringmaster::daemon
