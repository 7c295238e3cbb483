#include "sidecar/rendezvous/rendezvous.h"

#include <grpcpp/grpcpp.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "common/rpc/connection_limits.h"
#include "common/rpc/message_size.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "rendezvous.grpc.pb.h"
#include "sidecar/net/address.h"
#include "sidecar/rendezvous/call_deadline.h"
#include "sidecar/rendezvous/calls_in_flight.h"
#include "sidecar/rendezvous/dial_once.h"

namespace ringmaster::rendezvous {
namespace {

constexpr std::chrono::seconds kStopDeadline{1};
constexpr int kIdlePingMs = 60'000;

class Server final : public RendezvousServer, private v1::Rendezvous::CallbackService {
 public:
  Server(asio::io_context* loop, const RendezvousOptions& options,
         std::function<void(Envelope)> receive)
      : loop_(loop), options_(options), receive_(std::move(receive)) {}
  ~Server() override { Stop(); }

  tl::expected<void, std::string> Open() {
    const std::string address = options_.socket.empty()
                                    ? net::JoinAddress(options_.host, options_.port)
                                    : "unix:" + options_.socket;
    // Only sidecars of this job may call: the certificate says which job its owner is of.
    const auto credentials =
        options_.tls_dir.empty()
            ? grpc::InsecureServerCredentials()
            : tls::ServerCredentials(tls::FilesIn(options_.tls_dir),
                                     {.exact = tls::JobName(options_.job_uid)});
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    rpc::LimitMessages(&builder);
    rpc::LimitConnections(&builder);
    // The others keep their connections for a rebuild to come, so one whose other end has vanished
    // must be found without a call on it.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kIdlePingMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kIdlePingMs / 3);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
    builder.AddListeningPort(address, credentials, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port_ != 0) return {};
    return tl::unexpected("cannot listen on " + address +
                          (address.starts_with("unix:") ? " (in RINGMASTER_STATE_DIR)"
                                                        : " (RINGMASTER_RENDEZVOUS_PORT)"));
  }

  int port() const override { return port_; }

  void Stop() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + kStopDeadline);
    server_->Wait();
    server_.reset();
  }

 private:
  grpc::ServerUnaryReactor* Deliver(grpc::CallbackServerContext* context,
                                    const v1::MemberMessage* message, v1::Delivered*) override {
    return Take(Envelope::Kind::kMember, context, message);
  }
  grpc::ServerUnaryReactor* DeliverHistory(grpc::CallbackServerContext* context,
                                           const v1::MemberMessage* message,
                                           v1::Delivered*) override {
    return Take(Envelope::Kind::kHistory, context, message);
  }

  grpc::ServerUnaryReactor* Take(Envelope::Kind kind, grpc::CallbackServerContext* context,
                                 const v1::MemberMessage* message) {
    auto* reactor = context->DefaultReactor();
    if (message->job_uid() != options_.job_uid || message->to() != options_.self) {
      reactor->Finish({grpc::StatusCode::FAILED_PRECONDITION,
                       "to pod " + message->to() + " of job " + message->job_uid() +
                           ", this is pod " + options_.self + " of job " + options_.job_uid});
      return reactor;
    }
    Envelope envelope{.kind = kind,
                      .job_uid = message->job_uid(),
                      .from = message->from(),
                      .incarnation = message->incarnation(),
                      .to = message->to(),
                      .address = message->address(),
                      .body = message->body()};
    asio::post(*loop_, [receive = receive_, envelope = std::move(envelope)] { receive(envelope); });
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  asio::io_context* const loop_;
  const RendezvousOptions options_;
  const std::function<void(Envelope)> receive_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class GrpcRendezvousClient final : public RendezvousClient {
 public:
  GrpcRendezvousClient(asio::io_context* loop, const std::string& job_uid,
                       const std::string& tls_dir)
      : loop_(loop),
        server_name_(tls_dir.empty() ? "" : tls::JobName(job_uid)),
        credentials_(tls_dir.empty() ? grpc::InsecureChannelCredentials()
                                     : tls::ChannelCredentials(tls::FilesIn(tls_dir),
                                                               {.exact = tls::JobName(job_uid)})),
        calls_(std::make_shared<CallsInFlight>()) {}
  ~GrpcRendezvousClient() override { Stop(); }

  void Send(const std::string& address, const Envelope& envelope,
            std::chrono::milliseconds deadline,
            std::function<void(const std::string&)> failed) override {
    struct Call {
      grpc::ClientContext context;
      v1::MemberMessage request;
      v1::Delivered reply;
    };
    auto call = std::make_shared<Call>();
    call->request.set_job_uid(envelope.job_uid);
    call->request.set_from(envelope.from);
    call->request.set_incarnation(envelope.incarnation);
    call->request.set_to(envelope.to);
    call->request.set_address(envelope.address);
    call->request.set_body(envelope.body);
    if (!calls_->Begin(&call->context)) return;
    const auto patience = CallDeadline::Begin(loop_, call, deadline);
    const Peer& peer = PeerAt(address);
    auto done = [loop = loop_, calls = calls_, call, patience, failed = std::move(failed),
                 silent = peer.silent](grpc::Status status) mutable {
      if (patience->Passed(status)) *silent = true;
      asio::post(*loop, [patience, failed, ok = status.ok(), why = patience->Why(status)] {
        patience->End();
        if (!ok && failed) failed(why);
      });
      calls->End(std::move(call));
    };
    auto* const stub = peer.stub->async();
    if (envelope.kind == Envelope::Kind::kHistory)
      stub->DeliverHistory(&call->context, &call->request, &call->reply, std::move(done));
    else
      stub->Deliver(&call->context, &call->request, &call->reply, std::move(done));
  }

  void Prepare(const std::string& address) override {
    PeerAt(address).channel->GetState(/*try_to_connect=*/true);
  }

  void Retain(const std::set<std::string>& addresses) override {
    std::erase_if(peers_, [&](const auto& peer) { return addresses.count(peer.first) == 0; });
  }

  void Stop() override { calls_->StopAndWait(); }

 private:
  struct Peer {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::Rendezvous::Stub> stub;
    // A message went unanswered: the link may have been cut, and what TCP has in flight on it is
    // sent again only after a while that grows to minutes. The next message dials anew.
    std::shared_ptr<std::atomic<bool>> silent = std::make_shared<std::atomic<bool>>(false);
  };

  // A pod that was not there a moment ago may be there now: each message dials where the one before
  // could not connect.
  static bool IsOfUse(const Peer& peer) {
    return !*peer.silent && peer.channel->GetState(false) != GRPC_CHANNEL_TRANSIENT_FAILURE;
  }

  const Peer& PeerAt(const std::string& address) {
    auto it = peers_.find(address);
    if (it != peers_.end() && IsOfUse(it->second)) return it->second;
    grpc::ChannelArguments arguments;
    DialOnce(&arguments);
    // Another channel to the same address has a connection of its own.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    if (!server_name_.empty()) arguments.SetSslTargetNameOverride(server_name_);
    auto channel = grpc::CreateCustomChannel(address, credentials_, arguments);
    auto stub = v1::Rendezvous::NewStub(channel);
    return peers_[address] = Peer{std::move(channel), std::move(stub)};
  }

  asio::io_context* const loop_;
  const std::string server_name_;  // in the certificates of our job; empty: no TLS
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::map<std::string, Peer> peers_;
  std::shared_ptr<CallsInFlight> calls_;
};

}  // namespace

tl::expected<std::unique_ptr<RendezvousServer>, std::string> RendezvousServer::Listen(
    asio::io_context* loop, const RendezvousOptions& options,
    std::function<void(Envelope)> receive) {
  auto server = std::make_unique<Server>(loop, options, std::move(receive));
  const auto listens = server->Open();
  if (!listens) return tl::unexpected(listens.error());
  return server;
}

std::unique_ptr<RendezvousClient> RendezvousClient::Create(asio::io_context* loop,
                                                           const std::string& job_uid,
                                                           const std::string& tls_dir) {
  return std::make_unique<GrpcRendezvousClient>(loop, job_uid, tls_dir);
}

}  // namespace ringmaster::rendezvous
