#include "operator/kube/credentials.h"

#include <algorithm>
#include <sstream>

#include "operator/kube/exec_plugin.h"
#include "operator/kube/file.h"
#include "operator/kube/pem.h"

namespace ringmaster::kube {
namespace {

constexpr std::chrono::seconds kFileAge{60};
constexpr std::chrono::seconds kBeforeExpiry{10};
constexpr std::chrono::seconds kAfterFailure{5};

tl::unexpected<Error> Bad(const std::string& what) {
  return tl::unexpected(Error{ErrorCode::kForbidden, 0, "", what});
}

tl::unexpected<Error> CantBeRead(const std::string& what, const std::filesystem::path& file,
                                 const std::error_code& why) {
  return Bad("can't read " + what + file.string() + ": " + why.message());
}

// A token is a header value, so it must not contain characters that could end the header line.
bool GoodToken(const std::string& token) {
  return std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > 32 && c < 127; });
}

bool Same(const Credential& a, const Credential& b) {
  return a.token == b.token && a.client_cert_pem == b.client_cert_pem;
}

}  // namespace

Credentials::Credentials(const ClientConfig& config, std::function<Clock::time_point()> now)
    : config_(config),
      fixed_(config.token_file.empty() && config.exec.command.empty() &&
             config.client_cert_file.empty()),
      now_(std::move(now)) {}

bool Credentials::Expire(const Credential& refused, Clock::time_point deadline) {
  if (fixed_) return false;
  std::unique_lock lock(mu_, std::defer_lock);
  if (!lock.try_lock_until(deadline)) return true;  // another thread fetches one now
  // Another thread may have been refused as well and have fetched a new credential since.
  if (cached_ && Same(*cached_, refused)) cached_.reset();
  return true;
}

Result<Credential> Credentials::Get(Clock::time_point deadline) {
  if (fixed_) return Credential{config_.token, config_.client_cert_pem, config_.client_key_pem};
  std::unique_lock lock(mu_, std::defer_lock);
  if (!lock.try_lock_until(deadline))
    return Bad("no credential before the deadline: still waiting for " + config_.exec.command);
  if (cached_ && now_() < fresh_until_) return *cached_;
  auto fresh = Fetch(deadline);
  if (fresh) {
    cached_ = *fresh;
    return fresh;
  }
  if (!cached_ || now_() >= good_until_) return fresh;
  // So that not every call tries again.
  fresh_until_ = std::min(now_() + kAfterFailure, good_until_);
  return *cached_;
}

Result<Credential> Credentials::Fetch(Clock::time_point deadline) {
  auto fresh = config_.exec.command.empty() ? FromFiles() : FromPlugin(deadline);
  if (fresh && !GoodToken(fresh->token)) {
    return Bad(config_.exec.command.empty()
                   ? "the token in " + config_.token_file.string() +
                         " has characters that no token has"
                   : "credential plugin " + config_.exec.command +
                         " printed a token with characters that no token has");
  }
  return fresh;
}

Result<Credential> Credentials::FromFiles() {
  Credential credential{config_.token, config_.client_cert_pem, config_.client_key_pem};
  if (!config_.token_file.empty()) {
    const auto text = ReadFile(config_.token_file);
    if (!text) return CantBeRead("a token from ", config_.token_file, text.error());
    if (!(std::istringstream(*text) >> credential.token))
      return Bad("there is no token in " + config_.token_file.string());
  }
  if (!config_.client_cert_file.empty()) {
    auto cert = ReadFile(config_.client_cert_file), key = ReadFile(config_.client_key_file);
    if (!cert) return CantBeRead("", config_.client_cert_file, cert.error());
    if (!key) return CantBeRead("", config_.client_key_file, key.error());
    // While the two are replaced, one after the other, the old pair is used.
    if (auto pair = CheckPair(*cert, *key, config_.host, ErrorCode::kForbidden); !pair)
      return tl::unexpected(pair.error());
    credential.client_cert_pem = *cert;
    credential.client_key_pem = *key;
  }
  fresh_until_ = now_() + kFileAge;
  good_until_ = Clock::time_point::max();  // only the server knows when the token expires
  return credential;
}

Result<Credential> Credentials::FromPlugin(Clock::time_point deadline) {
  auto answer = RunExecPlugin(config_.exec, deadline, config_.stop);
  if (!answer) return tl::unexpected(answer.error());
  Credential credential{answer->token, answer->client_cert_pem, answer->client_key_pem};
  if (credential.client_cert_pem.empty()) {
    credential.client_cert_pem = config_.client_cert_pem;
    credential.client_key_pem = config_.client_key_pem;
  }
  fresh_until_ = good_until_ = Clock::time_point::max();
  if (answer->expires) {
    good_until_ = now_() + (*answer->expires - std::chrono::system_clock::now());
    fresh_until_ = good_until_ - kBeforeExpiry;
  }
  return credential;
}

}  // namespace ringmaster::kube
