// Mutual TLS for gRPC: credentials that read their files again when these change, ask every peer
// for a certificate, and refuse one that our authority did not sign or that carries another name. A
// log line says why a peer was refused.
//
// Thread rule: every function is safe from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace grpc {
class AuthContext;
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace ringmaster::tls {

// Paths of PEM files.
struct Files {
  std::string ca, certificate, key;
};

// The files of a mounted Secret: ca.crt, tls.crt and tls.key.
Files FilesIn(const std::string& directory);

// Empty, or what is wrong with the files: one is absent or not readable, key and certificate do not
// belong together, or the certificate is not for `name`.
std::string WhyNotUsable(const Files& files, const std::string& name);

// The peers that are let in, by the DNS names of their certificates.
struct PeerName {
  std::string exact;   // this name, or
  std::string suffix;  // any name that ends so
};

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const Files& files, PeerName clients);
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const Files& files, PeerName server);

// Whether the peer of a call proved this name. A server whose `clients` lets in several names must
// check it in each call.
bool HasName(const std::shared_ptr<const grpc::AuthContext>& peer, const std::string& name);

}  // namespace ringmaster::tls
