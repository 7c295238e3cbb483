// Serves the embedded API server to the tests of this folder and to that of the operator's page,
// and answers for the parser: prints {"port", "token", "ca"}, then for each line of stdin, a
// HorovodJob as JSON, a line with what is wrong in it, [{"path", "message"}]. Ends when stdin does.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/kube/random_hex.h"
#include "operator/local/server/rest_server.h"
#include "operator/local/store/embedded_crd.h"

namespace {

using nlohmann::json;
using namespace ringmaster;

json WhatIsWrong(const std::string& line) {
  json wrong = json::array();
  const auto job = api::ParseHorovodJob(json::parse(line, nullptr, false));
  if (job) return wrong;
  for (const api::FieldError& error : job.error()) {
    wrong.push_back({{"path", error.path}, {"message", error.message}});
  }
  return wrong;
}

// Knows the bearer tokens "viewer" and "tenant"; the viewer may see the operator's page.
json Review(const std::string& kind, const json& spec) {
  if (kind == "TokenReview") {
    const std::string token = spec.value("token", "");
    return {{"authenticated", token == "viewer" || token == "tenant"},
            {"user", {{"username", token}}}};
  }
  const bool page = spec.value("/nonResourceAttributes/path"_json_pointer, "") == "/page";
  return {{"allowed", page && spec.value("user", "") == "viewer"}};
}

}  // namespace

int main() {
  auto tls = local::MakeTlsMaterial();
  if (!tls) {
    std::cerr << tls.error() << "\n";
    return 1;
  }
  local::StoreOptions store;
  store.crd_yaml = local::kEmbeddedCrd;
  local::RestServerOptions options;
  options.tls = *tls;
  options.token = kube::RandomHex(16);
  options.crd_yaml = local::kEmbeddedCrd;
  options.review = Review;
  const std::string token = options.token;
  auto server = local::RestServer::Start(std::move(options), std::make_shared<local::Store>(store));
  if (!server) {
    std::cerr << server.error() << "\n";
    return 1;
  }
  std::cout << json{{"port", (*server)->port()}, {"token", token}, {"ca", tls->ca_pem}}
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << WhatIsWrong(line) << std::endl;
  }
  (*server)->Stop();
  return 0;
}
