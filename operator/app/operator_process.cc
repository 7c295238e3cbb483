#include "operator/app/operator_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "common/logging/log.h"
#include "common/sync/pause.h"
#include "operator/app/api_server.h"
#include "operator/app/rights.h"
#include "operator/app/setting_texts.h"

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Kubernetes allows 30 s by default, but a restart of the operator waits for this.
constexpr milliseconds kAbandonCalls{3'000};
constexpr milliseconds kEndAnyway{4'500};
// An operator waits without limit for what is missing in the cluster, and reports it.
constexpr std::chrono::hours kForCaches{24 * 365};

constexpr char kByRequests[] = "ProvisioningRequest";  // --autoscaling

// Two processes must never share an identity: it contains the pod's uid, or a random text.
std::string Identity(const ProcessIdentity& identity) {
  if (!identity.pod_name.empty()) {
    return identity.pod_name + (identity.pod_uid.empty() ? "" : "_" + identity.pod_uid);
  }
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", host, random(), random());
}

[[noreturn]] void EndNow(ProcessExit code) {
  logging::Flush();
  _exit(static_cast<int>(code));
}

// Ends the process in time after a stop request, whatever hangs. Nothing is lost by that, because
// the next operator reads everything from the API server and from the sidecars again.
class EndInTime {
 public:
  EndInTime(std::stop_token stop, ApiClients* clients)
      : thread_([this, stop = std::move(stop), clients](std::stop_token done) {
          Run(done, stop, clients);
        }) {}

 private:
  void Run(std::stop_token done, std::stop_token stop, ApiClients* clients) {
    const std::stop_callback wake(stop, [this] {
      const sync::MutexLock lock(&mu_);
      changed_.NotifyAll();
    });
    {
      const sync::MutexLock lock(&mu_);
      while (!stop.stop_requested() && !done.stop_requested()) changed_.Wait(&mu_, done);
    }
    const auto over = [&done](milliseconds duration) {
      sync::Pause(done, duration);
      return !done.stop_requested();
    };
    if (!stop.stop_requested() || !over(kAbandonCalls)) return;
    logging::Warn("calls to the API server abandoned");
    clients->Abandon();
    if (!over(kEndAnyway - kAbandonCalls)) return;
    logging::Warn("something hangs: ending without it");
    EndNow(ProcessExit::kStopped);
  }

  sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  std::jthread thread_;
};

}  // namespace

OperatorProcess::OperatorProcess(OperatorConfig config, kube::ClientConfig client,
                                 ProcessIdentity identity, OpenPage open_page)
    : config_(std::move(config)),
      identity_(std::move(identity)),
      open_page_(std::move(open_page)),
      metrics_(identity_.version),
      clients_(std::move(client), {config_.kube_qps, config_.kube_burst}, identity_.version,
               &metrics_) {}

OperatorProcess::~OperatorProcess() = default;

void OperatorProcess::RequestStop() {
  stop_.request_stop();
  const sync::MutexLock lock(&mu_);
  changed_.NotifyAll();
}

ProcessExit OperatorProcess::Run() {
  const EndInTime in_time(stop_.get_token(), &clients_);
  auto api = ApiClients::Connect(clients_.ForOperator());
  if (api == nullptr) return ProcessExit::kNoApi;
  {
    const sync::MutexLock lock(&mu_);
    api_ = std::move(api);
  }
  if (!Listen()) return ProcessExit::kFailed;
  ProcessExit end = ProcessExit::kStopped;
  if (!AwaitApiServer()) {
    if (!stop_.stop_requested()) end = ProcessExit::kFailed;
  } else if (AwaitLeadership()) {
    if (const auto running = RunOperator(); running) {
      logging::Info("operator runs listen={} namespace={} version={}", config_.listen,
                    config_.watch_namespaces.empty() ? "(all)" : config_.watch_namespaces,
                    identity_.version);
      const sync::MutexLock lock(&mu_);
      while (!stop_.stop_requested()) changed_.Wait(&mu_);
    } else if (!stop_.stop_requested()) {
      logging::Error("operator can't run error={}", logging::Value(running.error().message));
      end = ProcessExit::kFailed;
    }
  }
  StopAll();
  logging::Info("operator ends exit_code={}", static_cast<int>(end));
  return end;
}

bool OperatorProcess::Listen() {
  std::shared_ptr<kube::KubeApi> reviews;
  if (config_.metrics_secure) {
    reviews = ApiClients::Connect(clients_.ForStrangers());
    if (reviews == nullptr) return false;
  }
  return endpoints_.Listen({.health = config_.health_listen, .metrics = config_.metrics_listen},
                           {.not_alive = [this] { return NotAlive(); },
                            .not_ready = [this] { return NotReady(); },
                            .metrics = [this] { return Metrics(); }},
                           std::move(reviews));
}

bool OperatorProcess::AwaitApiServer() {
  ApiWaitOptions options;
  options.namespaces = Names(config_.watch_namespaces);
  options.timeout = seconds(config_.api_server_timeout_seconds);
  options.on_problem = [this](const std::string& what) {
    const sync::MutexLock lock(&mu_);
    api_problem_ = what;
  };
  options.on_problem("the API server has not answered yet");
  const auto there = WaitForApiServer(api_.get(), options, stop_.get_token());
  if (!there && !stop_.stop_requested()) {
    logging::Error("the API server is away error={}", logging::Value(there.error().message));
  }
  if (there) CheckRights();
  return there.has_value();
}

// The operator starts even if rights are missing: most jobs need only some of them, and each call
// that fails is reported.
void OperatorProcess::CheckRights() {
  const RightsScope scope = {
      .watch_namespaces = Names(config_.watch_namespaces),
      .lease_namespace = config_.leader_elect ? LeaseNamespace() : "",
      .authority_namespace = config_.tls ? OwnNamespace() : "",
      .whole_cluster = config_.gang_admission,
      .pod_groups = config_.pod_groups == "Auto",
      .kueue = config_.kueue,
      .provisioning_requests = config_.autoscaling == kByRequests && config_.gang_admission,
      .trust_node_deletion = config_.trust_node_deletion,
      .reviews = config_.metrics_secure || !config_.page_listen.empty(),
      .page = !config_.page_listen.empty(),
  };
  const auto missing = MissingRights(api_.get(), WantedRights(scope), stop_.get_token());
  for (const Right& right : missing) {
    logging::Warn("a right is missing right={} given_by={}", logging::Value(right.ToString()),
                  right.ns.empty() ? "ClusterRole" : "Role");
  }
}

std::string OperatorProcess::LeaseNamespace() const {
  if (!config_.leader_election_namespace.empty()) return config_.leader_election_namespace;
  return identity_.pod_namespace.empty() ? "default" : identity_.pod_namespace;
}

std::string OperatorProcess::OwnNamespace() const {
  if (!config_.operator_namespace.empty()) return config_.operator_namespace;
  return identity_.pod_namespace.empty() ? "default" : identity_.pod_namespace;
}

bool OperatorProcess::AwaitLeadership() {
  if (!config_.leader_elect) {
    leadership_.LeadAlone();
    return true;
  }
  Leadership::Candidacy candidacy;
  candidacy.ns = LeaseNamespace();
  candidacy.lease = config_.leader_election_name;
  candidacy.pod = identity_.pod_name;
  candidacy.options.identity = Identity(identity_);
  candidacy.options.lease_duration = seconds(config_.lease_duration_seconds);
  candidacy.options.renew_deadline = seconds(config_.renew_deadline_seconds);
  candidacy.options.retry_period = seconds(config_.retry_period_seconds);
  kube::ClientConfig for_elector = clients_.ForOperator();
  for_elector.deadline = candidacy.options.renew_deadline / 2;
  candidacy.elector_api = ApiClients::Connect(for_elector);
  if (candidacy.elector_api == nullptr) return false;
  candidacy.label_api = api_;
  // The process ends at once, because anything it still did could conflict with the next leader.
  candidacy.on_lost = [](const std::string&) { EndNow(ProcessExit::kLostLease); };
  return leadership_.AwaitElection(std::move(candidacy), stop_.get_token());
}

OperatorOptions OperatorProcess::AppOptions() const {
  OperatorOptions options;
  options.listen = config_.listen;
  options.sidecar_target = config_.sidecar_target;
  options.sidecar_image = config_.sidecar_image;
  options.sidecar_image_pull_policy = config_.sidecar_image_pull_policy;
  if (!config_.sidecar_resources.empty()) {
    options.sidecar_resources = kube::Json::parse(config_.sidecar_resources);  // was checked before
  }
  if (config_.log_format != "text") options.sidecar_log_format = config_.log_format;
  options.tls = config_.tls;
  options.operator_namespace = OwnNamespace();
  options.network_policy = config_.network_policy;
  options.metrics_namespace = config_.metrics_namespace;
  options.watch_namespaces = Names(config_.watch_namespaces);
  options.workers = config_.workers;
  options.gang_admission = config_.gang_admission;
  options.pod_groups = config_.pod_groups == "Auto";
  options.kueue = config_.kueue;
  options.node_calls = {.calls = config_.autoscaling != "None",
                        .after = seconds(config_.autoscaling_after_seconds),
                        .jobs_at_once = static_cast<std::size_t>(config_.autoscaling_jobs)};
  options.nodes_within = seconds(config_.autoscaling_within_seconds);
  if (config_.autoscaling == kByRequests) options.provisioning_class = config_.autoscaling_class;
  options.trust_node_deletion = config_.trust_node_deletion;
  if (!config_.disruption_taints.empty()) {
    options.disruption_taints = Split(config_.disruption_taints, ',');
  }
  options.sync_timeout = kForCaches;
  if (!identity_.pod_name.empty()) options.instance = identity_.pod_name;
  return options;
}

kube::Result<void> OperatorProcess::RunOperator() {
  OperatorOptions options = AppOptions();
  options.metrics = metrics_.controllers();
  {
    const sync::MutexLock lock(&mu_);
    app_ = OperatorApp::Create(api_, options);
  }
  if (auto running = app_->Run(stop_.get_token()); !running) return running;
  if (auto opened = OpenThePage(); !opened) return opened;
  // The label comes last, so that sidecars find a server that is ready.
  leadership_.SetLabel();
  return {};
}

kube::Result<void> OperatorProcess::OpenThePage() {
  if (config_.page_listen.empty() || open_page_ == nullptr) return {};
  auto reviews = ApiClients::Connect(clients_.ForStrangers());
  auto reads = ApiClients::Connect(clients_.ForStrangers());
  if (reviews == nullptr || reads == nullptr) {
    return tl::unexpected(kube::Error{.message = "the page has no way to the API server"});
  }
  auto page = open_page_({.listen = config_.page_listen,
                          .sample = [this] { return app_->Sample(); },
                          .reviews = std::move(reviews),
                          .reads = std::move(reads)});
  if (!page) return tl::unexpected(page.error());
  logging::Info("endpoint opened flag=--page-listen port={}", (*page)->port());
  page_ = std::move(*page);
  return {};
}

void OperatorProcess::StopAll() {
  stop_.request_stop();
  leadership_.RemoveLabel();
  if (app_ != nullptr) app_->Stop();
  leadership_.Release();
  endpoints_.Stop();
  // The page is closed last: it may wait for pods that don't answer until EndInTime ends the
  // process, and the lease has to be released before that.
  page_.reset();
}

std::vector<std::string> OperatorProcess::NotReady() const {
  if (stop_.stop_requested()) return {"stopping"};
  const sync::MutexLock lock(&mu_);
  if (!api_problem_.empty()) return {api_problem_};
  std::vector<std::string> missing;
  if (const std::string error = leadership_.lease_error(); !error.empty()) {
    missing.push_back("the lease is out of reach: " + error);
  }
  // A standby is ready: it can take over.
  if (app_ == nullptr) {
    if (leadership_.leads()) missing.push_back("the controllers have not started");
    return missing;
  }
  for (std::string& what : app_->NotReady()) missing.push_back(std::move(what));
  // Sidecars find the leader by its label.
  if (const std::string error = leadership_.label_error(); missing.empty() && !error.empty()) {
    missing.push_back("this pod lacks the leader's label: " + error);
  }
  return missing;
}

std::vector<std::string> OperatorProcess::NotAlive() const {
  std::vector<std::string> hung;
  if (!stop_.stop_requested() && leadership_.ElectionHangs(Leadership::Clock::now())) {
    hung.push_back("the election hangs");
  }
  const sync::MutexLock lock(&mu_);
  if (app_ == nullptr) return hung;
  for (std::string& what : app_->NotAlive()) hung.push_back(std::move(what));
  return hung;
}

std::string OperatorProcess::Metrics() {
  OperatorSample sample;
  {
    const sync::MutexLock lock(&mu_);
    if (app_ != nullptr) sample = app_->Sample();
  }
  return metrics_.Text(sample);
}

}  // namespace ringmaster::app
