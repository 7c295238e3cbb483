#include "sidecar/app/sidecar.h"

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "common/logging/log.h"
#include "common/membership/message_json.h"
#include "common/ring_key/ring_key.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "sidecar/app/agent.h"
#include "sidecar/app/http_answers.h"
#include "sidecar/app/ports_file.h"
#include "sidecar/app/state_file.h"
#include "sidecar/health/http_server.h"
#include "sidecar/health/metrics.h"
#include "sidecar/link_server/link_server.h"
#include "sidecar/net/address.h"
#include "sidecar/rendezvous/heartbeat.h"
#include "sidecar/rendezvous/operator_client.h"
#include "sidecar/rendezvous/rendezvous.h"

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDeliverDeadline{1000}, kRecordDeadline{500}, kHistoryDeadline{3000};
// Connections are opened ahead in worlds of up to so many pods; in larger ones that would be too
// many.
constexpr size_t kMaxPrepared = 16;
// A stranger can have as many heartbeats refused as it likes; the metric counts them all.
constexpr std::chrono::seconds kBetweenRefusals{10};

int64_t UnixMs() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A container sees its node's kernel, so its boot id as well. Empty: it can't be read.
std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

// Base64; empty: the job has none, as one that began under an operator that made none.
tl::expected<std::string, std::string> RingKeyOf(const SidecarOptions& options) {
  std::filesystem::path file = options.ring_key_file;
  const bool named = !file.empty();
  if (!named) {
    file = std::filesystem::path(options.tls_dir) / ring_key::kFileName;
    std::error_code unreadable;
    if (options.tls_dir.empty() || !std::filesystem::exists(file, unreadable)) return std::string();
  }
  const auto key = ring_key::ReadFile(file);
  if (!key) {
    return tl::unexpected((named ? "RINGMASTER_RING_KEY_FILE: " : "RINGMASTER_TLS_DIR: ") +
                          key.error());
  }
  return ring_key::Encode(*key);
}

using Opened = tl::expected<void, std::string>;

// What listens now goes to `to`, which stays as it was where nothing does.
template <typename Server>
Opened Keep(tl::expected<std::unique_ptr<Server>, std::string> listens,
            std::unique_ptr<Server>* to) {
  if (!listens) return tl::unexpected(listens.error());
  *to = std::move(*listens);
  return {};
}

class SidecarImpl final : public Sidecar {
 public:
  SidecarImpl(asio::io_context* loop, const SidecarOptions& options)
      : loop_(loop),
        options_(options),
        state_file_(options.state_dir, options.pod_uid),
        ports_file_(options.state_dir, options.pod_uid),
        metrics_(options.job_namespace, options.job_name, options.pod_name),
        timer_(*loop) {}

  ~SidecarImpl() override { Close(); }

  Opened Open() {
    if (!options_.tls_dir.empty()) {
      // Kubernetes may still mount the Secret of an earlier job with this job's name. The ring key
      // is read once, so this process must not begin with that one's.
      const std::string wrong =
          tls::WhyNotUsable(tls::FilesIn(options_.tls_dir), tls::JobName(options_.job_uid));
      if (!wrong.empty()) return tl::unexpected("RINGMASTER_TLS_DIR: " + wrong);
    }
    options_.boot_id = BootId();
    const auto key = RingKeyOf(options_);
    if (!key) return tl::unexpected(key.error());
    options_.ring_key = *key;
    const Ports before = ports_file_.Load();
    auto state = state_file_.Load(NewIncarnation(before, UnixMs()));
    if (!state) return tl::unexpected(state.error());
    if (Opened ports = OpenPorts(before, state->incarnation); !ports) return ports;
    membership::Pod self = Self(state->incarnation);
    const Epoch epoch = membership::EpochOf(state->view);
    agent_ = std::make_unique<Agent>(options_, self, std::move(*state), Outputs(), &metrics_);
    agent_->Start();
    if (Opened link = OpenLink(); !link) return link;
    if (!options_.operator_target.empty()) OpenOperator(self, epoch);
    logging::Info("sidecar started rendezvous={} heartbeat={} http={} operator={}", self.address,
                  self.heartbeat, self.http,
                  options_.operator_target.empty() ? "none" : options_.operator_target);
    Schedule();
    return {};
  }

  void Terminate() override {
    agent_->Terminate();
    Schedule();
  }
  int exit_code() const override { return agent_->exit_code(); }

 private:
  // Where a forerunner of this process listened: the view tells the others to look there.
  Opened OpenPorts(const Ports& before, uint64_t incarnation) {
    auto open = [](int configured, int remembered, const auto& listen) -> Opened {
      if (configured == 0 && remembered != 0 && listen(remembered)) return {};
      return listen(configured);  // taken meanwhile: this pod is dropped and rejoins
    };
    const Opened opened = open(options_.heartbeat_port, before.heartbeat,
                               [&](int port) { return OpenHeartbeats(port); })
                              .and_then([&] {
                                return open(options_.rendezvous_port, before.rendezvous,
                                            [&](int port) { return OpenRendezvous(port); });
                              })
                              .and_then([&] {
                                return open(options_.http_port, before.http,
                                            [&](int port) { return OpenHttp(port); });
                              });
    if (!opened) return opened;
    peers_ = rendezvous::RendezvousClient::Create(loop_, options_.job_uid, options_.tls_dir);
    const Ports now{rendezvous_->port(), heartbeats_->port(), http_->port(), incarnation};
    if (now == before) return {};  // where the disk is full it goes on as its forerunner did
    return ports_file_.Store(now);
  }

  Opened OpenHeartbeats(int port) {
    rendezvous::HeartbeatCallbacks callbacks;
    callbacks.on_suspect = [this](const std::string& pod, const std::string& why) {
      Do([&] { agent_->peers().OnSuspect(pod, why); });
    };
    callbacks.on_unreachable = [this](const std::string& pod, const std::string& why) {
      Do([&] { agent_->peers().OnUnreachable(pod, why); });
    };
    callbacks.on_heard = [this](const std::string& pod, const rendezvous::HeartbeatNews& news) {
      Do([&] { agent_->peers().OnHeard(pod, news.epoch, news.step); });
    };
    callbacks.on_refused = [next = SteadyTime()](const std::string& from,
                                                 const std::string& why) mutable {
      const SteadyTime now = std::chrono::steady_clock::now();
      if (now < next) return;
      next = now + kBetweenRefusals;
      logging::Warn("heartbeat refused from={} reason=\"{}\"", from, why);
    };
    rendezvous::HeartbeatOptions options;
    options.bind = options_.bind;
    options.port = port;
    options.job = options_.job_uid;
    options.self = options_.pod_uid;
    options.key = RingKey();
    return Keep(rendezvous::Heartbeats::Listen(loop_, options, std::move(callbacks)), &heartbeats_);
  }

  // 32 bytes; empty: the job has none.
  std::string RingKey() const { return ring_key::Decode(options_.ring_key).value_or(""); }

  Opened OpenRendezvous(int port) {
    auto listens = rendezvous::RendezvousServer::Listen(
        loop_,
        {.host = options_.bind,
         .port = port,
         .socket = options_.rendezvous_socket,
         .job_uid = options_.job_uid,
         .self = options_.pod_uid,
         .tls_dir = options_.tls_dir},
        [this](rendezvous::Envelope envelope) {
          Do([&] {
            if (envelope.kind == rendezvous::Envelope::Kind::kHistory)
              return agent_->OnHistory(envelope.body, envelope.from);
            agent_->peers().OnMessage(envelope.body, envelope.from, envelope.address);
          });
        });
    return Keep(std::move(listens), &rendezvous_);
  }

  Opened OpenHttp(int port) {
    const HttpSubjects subjects = {
        .healthy = [this] { return agent_->exit_code() == 0; },
        .ready = [this] { return agent_->Ready(); },
        .metrics = [this] { return metrics_.Text(); },
        .history = [this] { return agent_->History().dump() + "\n"; },
        .status = [this](std::size_t rebuilds) { return agent_->Status(rebuilds).dump() + "\n"; },
        .timeline = [this](const TimelineAsk& ask) { return agent_->Timeline(ask); },
    };
    auto listens =
        health::HttpServer::Listen(loop_, options_.bind, port,
                                   [subjects, key = RingKey()](const health::HttpRequest& request) {
                                     return Answer(request, subjects, key);
                                   });
    return Keep(std::move(listens), &http_);
  }

  Opened OpenLink() {
    link_server::LinkCallbacks callbacks;
    callbacks.on_hello = [this](uint64_t id, link_server::Role role, const nlohmann::json& hello) {
      Do([&] {
        agent_->workers().OnHello(id, role == link_server::Role::kLauncher, hello,
                                  link_->PeerPid(id));
      });
    };
    callbacks.on_frame = [this](uint64_t id, const nlohmann::json& frame) {
      Do([&] { agent_->workers().OnFrame(id, frame); });
    };
    callbacks.on_closed = [this](uint64_t id, const std::string&) {
      Do([&] { agent_->workers().OnClosed(id); });
    };
    return Keep(link_server::LinkServer::Listen(loop_, options_.socket, std::move(callbacks)),
                &link_);
  }

  std::string RendezvousAddress() const {
    if (!options_.rendezvous_socket.empty()) return "unix:" + options_.rendezvous_socket;
    return net::JoinAddress(options_.advertise, rendezvous_->port());
  }

  membership::Pod Self(uint64_t incarnation) const {
    membership::Pod pod;
    pod.uid = options_.pod_uid;
    pod.name = options_.pod_name;
    pod.incarnation = incarnation;
    pod.node = options_.node;
    pod.zone = options_.zone;
    pod.address = RendezvousAddress();
    pod.heartbeat = net::JoinAddress(options_.advertise, heartbeats_->port());
    pod.http = net::JoinAddress(options_.advertise, http_->port());
    pod.proves_heartbeats = !options_.ring_key.empty();
    pod.reads_changes = true;
    return pod;
  }

  void OpenOperator(const membership::Pod& self, Epoch epoch) {
    job::Registration registration;
    registration.job_namespace = options_.job_namespace;
    registration.job_name = options_.job_name;
    registration.job_uid = options_.job_uid;
    registration.pod_name = options_.pod_name;
    registration.pod_uid = options_.pod_uid;
    registration.http_address = self.http;
    registration.epoch = epoch;
    registration.boot_id = options_.boot_id;
    rendezvous::OperatorCallbacks callbacks;
    callbacks.on_connection = [this](bool connected) {
      Do([&] { agent_->orders().OnConnection(connected); });
    };
    callbacks.on_accepted = [this] { Do([&] { agent_->orders().OnAccepted(); }); };
    callbacks.on_found = [this](const std::string& view) {
      Do([&] { agent_->orders().OnViewDecided(view); });
    };
    callbacks.on_drain = [this](const std::vector<std::string>& pods, const std::string& reason,
                                int64_t deadline, std::optional<int64_t> left_ms,
                                std::optional<bool> all_leave) {
      Do([&] { agent_->orders().OnDrain(pods, reason, deadline, left_ms, all_leave); });
    };
    callbacks.on_pod_gone = [this](const std::string& pod, const std::string& reason) {
      Do([&] { agent_->peers().OnSuspect(pod, reason); });
    };
    callbacks.on_target = [this](const membership::Sizes& sizes, uint32_t expected) {
      Do([&] { agent_->orders().OnTarget(sizes, expected); });
    };
    callbacks.on_finish = [this](const std::string& reason) {
      Do([&] { agent_->orders().OnFinish(reason); });
    };
    callbacks.on_recover = [this](uint64_t lineage, bool fresh_workers) {
      Do([&] { agent_->orders().OnRecover(lineage, fresh_workers); });
    };
    operator_ =
        rendezvous::OperatorClient::Create(loop_, options_.operator_target, options_.tls_dir,
                                           std::move(registration), std::move(callbacks));
    if (view_before_operator_ != nullptr) operator_->ReportView(view_before_operator_, "", 0);
  }

  AgentOutputs Outputs();
  OperatorOutputs OperatorLink();

  // Every way into the agent: afterwards its next wake-up may be another, or it may be done.
  template <typename Work>
  void Do(Work work) {
    if (agent_ == nullptr || agent_->Done()) return;
    work();
    Schedule();
  }

  void Schedule() {
    if (agent_->Done()) return Finish();
    const SteadyTime wake = agent_->NextWake();
    if (timer_set_ && wake >= wake_) return;
    timer_set_ = true;
    wake_ = wake;
    timer_.expires_at(wake);
    timer_.async_wait([this](std::error_code cancelled) {
      if (cancelled) return;
      timer_set_ = false;
      agent_->Tick();
      metrics_.SetHeartbeatsMissed(heartbeats_->missed());
      metrics_.SetHeartbeatsRefused(heartbeats_->refused());
      Schedule();
    });
  }

  void Finish() {
    logging::Info("sidecar ends exit_code={}", agent_->exit_code());
    loop_->stop();
  }

  void Close() {
    timer_.cancel();
    if (operator_ != nullptr) operator_->Stop();
    if (peers_ != nullptr) peers_->Stop();
    if (rendezvous_ != nullptr) rendezvous_->Stop();
    if (heartbeats_ != nullptr) heartbeats_->Stop();
    if (http_ != nullptr) http_->Stop();
    if (link_ != nullptr) link_->Stop();
  }

  asio::io_context* const loop_;
  SidecarOptions options_;  // constant after Open
  StateFile state_file_;
  const PortsFile ports_file_;
  health::Metrics metrics_;
  asio::steady_timer timer_;
  bool timer_set_ = false;
  SteadyTime wake_{};
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<rendezvous::Heartbeats> heartbeats_;
  std::unique_ptr<rendezvous::RendezvousServer> rendezvous_;
  std::unique_ptr<rendezvous::RendezvousClient> peers_;
  std::unique_ptr<health::HttpServer> http_;
  std::unique_ptr<link_server::LinkServer> link_;
  std::unique_ptr<rendezvous::OperatorClient> operator_;
  membership::ViewPtr
      view_before_operator_;  // of the stored state, reported before there was a client
};

// Without an operator there is nobody to tell: all of these do nothing then.
OperatorOutputs SidecarImpl::OperatorLink() {
  OperatorOutputs outputs;
  outputs.ask_record = [this](const membership::Message& message) {
    if (operator_ == nullptr) return;
    operator_->AskRecord(membership::EncodeMessage(message), kRecordDeadline,
                         [this](bool ok, const std::string& reply) {
                           if (ok) Do([&] { agent_->peers().OnRecordAnswer(reply); });
                         });
  };
  outputs.report_readiness = [this](bool ready, const std::vector<uint32_t>& missing,
                                    const std::string& candidate) {
    if (operator_ != nullptr) operator_->SetReadiness({ready, missing, candidate});
  };
  outputs.report_view = [this](const membership::ViewPtr& view, const std::string& rebuild,
                               uint64_t step) {
    if (operator_ != nullptr) return operator_->ReportView(view, rebuild, step);
    view_before_operator_ = view;
  };
  outputs.report_exit = [this](const job::WorkerExit& exit) {
    if (operator_ != nullptr) operator_->ReportWorkerExit(exit);
  };
  outputs.report_finished = [this](Epoch epoch) {
    if (operator_ != nullptr) operator_->ReportFinished(epoch);
  };
  outputs.report_health = [this](bool able, std::chrono::milliseconds unable) {
    if (operator_ != nullptr) operator_->ReportHealth(able, unable);
  };
  outputs.report_stalls = [this](const std::vector<job::Stall>& stalls) {
    if (operator_ != nullptr) operator_->ReportStalls(stalls);
  };
  outputs.report_failing_gpus = [this](const std::vector<job::GpuHealth>& gpus) {
    if (operator_ != nullptr) operator_->ReportFailingGpus(gpus);
  };
  outputs.report_step_awaited = [this](std::chrono::milliseconds awaited) {
    if (operator_ != nullptr) operator_->ReportStepAwaited(awaited);
  };
  outputs.report_all_leave = [this] {
    if (operator_ != nullptr) operator_->ReportAllLeave();
  };
  outputs.report_recovery = [this](const membership::RecoveryReport& report) {
    if (operator_ != nullptr) operator_->ReportRecovery(membership::EncodeReport(report));
  };
  return outputs;
}

AgentOutputs SidecarImpl::Outputs() {
  AgentOutputs outputs;
  outputs.clock.now = [] { return std::chrono::steady_clock::now(); };
  outputs.clock.unix_ms = UnixMs;
  outputs.persist = [this](const membership::PersistentState& state) {
    return state_file_.Store(state);
  };
  outputs.link.send = [this](uint64_t id, const nlohmann::json& frame) {
    if (link_ != nullptr) link_->Send(id, frame);
  };
  outputs.link.refuse = [this](uint64_t id, const std::string& message) {
    if (link_ != nullptr) link_->Refuse(id, message);
  };
  outputs.link.drop = [this](uint64_t id) {
    if (link_ != nullptr) link_->Drop(id);
  };
  const std::string address = RendezvousAddress();
  outputs.peers.deliver = [this, address](const std::string& to, const std::string& where,
                                          const membership::Message& message,
                                          const std::string& change) {
    if (where.empty()) return;
    peers_->Send(where,
                 {.job_uid = options_.job_uid,
                  .from = options_.pod_uid,
                  .incarnation = message.incarnation,
                  .to = to,
                  .address = address,
                  .body = membership::EncodeMessage(message, change)},
                 kDeliverDeadline, [to](const std::string& why) {
                   logging::Debug("message not delivered to={} reason=\"{}\"", to, why);
                 });
  };
  outputs.peers.hand_history = [this, address](const std::string& to, const std::string& where,
                                               const std::string& body) {
    if (where.empty()) return;
    peers_->Send(where,
                 {.kind = rendezvous::Envelope::Kind::kHistory,
                  .job_uid = options_.job_uid,
                  .from = options_.pod_uid,
                  .to = to,
                  .address = address,
                  .body = body},
                 kHistoryDeadline, [to](const std::string& why) {
                   logging::Debug("history not delivered to={} reason=\"{}\"", to, why);
                 });
  };
  outputs.peers.watch = [this](const std::vector<membership::Pod>& pods) {
    std::vector<rendezvous::HeartbeatPeer> peers;
    for (const membership::Pod& pod : pods) {
      peers.push_back({pod.uid, pod.heartbeat, pod.node, pod.proves_heartbeats});
    }
    heartbeats_->Watch(peers);
    std::set<std::string> addresses;
    for (const membership::Pod& pod : pods) addresses.insert(pod.address);
    if (operator_ != nullptr && !pods.empty()) peers_->Retain(addresses);
    if (pods.size() > kMaxPrepared) return;
    for (const membership::Pod& pod : pods) {
      if (pod.uid != options_.pod_uid) peers_->Prepare(pod.address);
    }
  };
  outputs.peers.suspects = [this](const std::string& pod) { return heartbeats_->Suspects(pod); };
  outputs.peers.look_around = [this](const std::string& pod) {
    return heartbeats_->LookAround(pod);
  };
  outputs.peers.unreachable = [this](const std::string& pod) {
    return heartbeats_->Unreachable(pod);
  };
  outputs.peers.set_news = [this](Epoch epoch, uint64_t step) {
    heartbeats_->SetNews({epoch, step});
    if (operator_ != nullptr) operator_->SetEpoch(epoch);
  };
  outputs.job_operator = OperatorLink();
  return outputs;
}

}  // namespace

tl::expected<std::unique_ptr<Sidecar>, std::string> Sidecar::Start(asio::io_context* loop,
                                                                   const SidecarOptions& options) {
  auto sidecar = std::make_unique<SidecarImpl>(loop, options);
  const Opened opened = sidecar->Open();
  if (!opened) return tl::unexpected(opened.error());
  return sidecar;
}

}  // namespace ringmaster::app
