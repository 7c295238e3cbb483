#include "operator/app/operator_identity.h"

#include "common/logging/log.h"
#include "common/sync/pause.h"

namespace ringmaster::app {
namespace {

kube::Error Cannot(const std::string& why) {
  return {.code = kube::ErrorCode::kInternal,
          .message = "the operator can't have a certificate: " + why};
}

}  // namespace

kube::Result<std::unique_ptr<OperatorIdentity>> OperatorIdentity::Create(
    const tls::KeyPair& authority, std::chrono::seconds lifetime) {
  std::unique_ptr<OperatorIdentity> self(new OperatorIdentity(authority, lifetime));
  const auto pair =
      tls::Issue(authority, {tls::kOperatorName}, std::chrono::system_clock::now(), lifetime);
  if (!pair) return tl::unexpected(Cannot(pair.error()));
  self->key_pem_ = pair->key_pem;
  const std::pair<std::unique_ptr<tls::MemoryFile>*, const std::string*> contents[] = {
      {&self->ca_, &authority.certificate_pem},
      {&self->certificate_, &pair->certificate_pem},
      {&self->key_, &pair->key_pem}};
  for (const auto& [file, text] : contents) {
    auto made = tls::MemoryFile::Create(*text);
    if (!made) return tl::unexpected(Cannot(made.error()));
    *file = std::move(*made);
  }
  self->files_ = {self->ca_->path(), self->certificate_->path(), self->key_->path()};
  self->thread_ = std::jthread([self = self.get()](std::stop_token stop) { self->Renew(stop); });
  return self;
}

// The key stays the same, so that key and certificate always match.
void OperatorIdentity::Renew(std::stop_token stop) {
  while (!stop.stop_requested()) {
    sync::Pause(stop, lifetime_ / 2);
    if (stop.stop_requested()) return;
    const auto pair = tls::Issue(authority_, {tls::kOperatorName}, std::chrono::system_clock::now(),
                                 lifetime_, key_pem_);
    if (pair && certificate_->Write(pair->certificate_pem)) {
      logging::Info("the operator's certificate is renewed");
    } else {
      logging::Error("the operator's certificate can't be renewed reason=\"{}\"",
                     pair ? "its file can't be written" : pair.error());
    }
  }
}

}  // namespace ringmaster::app
