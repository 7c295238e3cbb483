#include "operator/local/local_cluster.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "operator/kube/base64.h"
#include "operator/kube/errors.h"
#include "operator/kube/random_hex.h"
#include "operator/kube/resources.h"
#include "operator/kubelet/kubelet.h"
#include "operator/kubelet/node_object.h"
#include "operator/kubelet/parent_death_watchdog.h"
#include "operator/kubelet/process.h"
#include "operator/local/node_monitor.h"
#include "operator/local/scheduler.h"
#include "operator/local/server/collected_logs.h"
#include "operator/local/server/rest_server.h"
#include "operator/local/store/embedded_crd.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

extern char** environ;

namespace ringmaster::local {
namespace {

namespace fs = std::filesystem;

// How much longer than their pods nodes may take to end.
constexpr std::chrono::milliseconds kNodesWords{10'000};
constexpr std::chrono::milliseconds kLookForNodes{20};

tl::unexpected<kube::Error> Fail(const std::string& why) {
  return tl::unexpected(kube::Unavailable("local cluster", why));
}

// Readable by its owner only, from the first byte on.
bool WritePrivate(const fs::path& file, const std::string& text) {
  int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool ok = fchmod(fd, 0600) == 0 &&
            write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return close(fd) == 0 && ok;
}

std::string Kubeconfig(const std::string& address, int port, const std::string& ca_pem,
                       const std::string& token) {
  // JSON is YAML.
  Json config = {
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"clusters",
       {{{"name", "local"},
         {"cluster",
          {{"server", "https://" + address + ":" + std::to_string(port)},
           {"certificate-authority-data", kube::EncodeBase64(ca_pem)}}}}}},
      {"users", {{{"name", "local"}, {"user", {{"token", token}}}}}},
      {"contexts",
       {{{"name", "local"},
         {"context", {{"cluster", "local"}, {"user", "local"}, {"namespace", "default"}}}}}},
      {"current-context", "local"}};
  return config.dump(2) + "\n";
}

class Cluster : public LocalCluster {
 public:
  Cluster(const LocalClusterOptions& options, std::string id)
      : options_(options),
        id_(std::move(id)),
        store_(std::make_shared<Store>(
            StoreOptions{.crd_yaml = kEmbeddedCrd, .local_volumes_only = true})) {}
  ~Cluster() override { Stop(std::chrono::milliseconds(0)); }

  kube::Result<void> Start() {
    const fs::path& dir = options_.run_dir;
    std::error_code error;
    if (!fs::is_directory(dir, error))
      return Fail("run directory " + dir.string() + " doesn't exist");
    // Before any other thread, so that it holds nothing of ours.
    auto watchdog = kubelet::ParentDeathWatchdog::Start(Mark(), dir);
    if (!watchdog) return Fail(watchdog.error());
    watchdog_ = std::move(*watchdog);
    for (const char* sub : {"pods", "logs"}) {
      fs::create_directories(dir / sub, error);
      if (error) return Fail((dir / sub).string() + ": " + error.message());
      fs::permissions(dir / sub, fs::perms::owner_all, error);
    }
    AddNodes();
    if (options_.nodes > 0) {
      MakeKubelet();
    } else {
      collected_ = std::make_unique<CollectedLogs>(fs::absolute(dir) / "logs", store_);
    }
    if (auto served = Serve(); !served) return served;
    if (kubelet_) kubelet_->Start();
    scheduler_ = std::make_unique<Scheduler>(store_);
    scheduler_->Start();
    if (collected_) {
      monitor_ = std::make_unique<NodeMonitor>(store_);
      monitor_->Start();
    }
    return {};
  }

  fs::path kubeconfig() const override { return options_.run_dir / "kubeconfig"; }
  std::vector<std::string> NodesLeft() const override { return nodes_left_; }

  kube::Result<void> KillPod(const std::string& ns, const std::string& pod) override {
    if (kubelet_ && kubelet_->KillPod(ns, pod)) return {};
    return tl::unexpected(kube::ErrorFromStatus(kube::Asked("kill", kube::Pods(), ns, pod), 404,
                                                Failure(404, "NotFound", "no such pod runs here")));
  }

  void Stop(std::chrono::milliseconds grace) override {
    if (stopped_) return;
    stopped_ = true;
    if (monitor_) monitor_->Stop();
    if (scheduler_) scheduler_->Stop();
    if (kubelet_) kubelet_->Stop(grace);
    if (server_ && options_.nodes == 0) EndNodes(grace + kNodesWords);
    store_->Close();
    if (server_) server_->Stop();
    std::error_code error;
    fs::remove(kubeconfig(), error);
    fs::remove_all(options_.run_dir / "pods", error);
    if (watchdog_) watchdog_->Dismiss();
  }

 private:
  std::string Mark() const { return "RINGMASTER_RUN=" + id_; }

  void AddNodes() {
    for (int i = 0; i < options_.nodes; ++i) {
      (void)store_->Create(
          kube::Nodes(), "",
          kubelet::MakeNode({.name = "local-" + std::to_string(i), .cpus = options_.cpus}));
    }
  }

  void MakeKubelet() {
    kubelet::RunnerOptions runner;
    runner.run_dir = fs::absolute(options_.run_dir);
    runner.bin_dir = fs::absolute(options_.bin_dir);
    runner.run_mark = Mark();
    runner.server_is_here = true;
    for (char** e = environ; *e; ++e) runner.machine_env.push_back(*e);
    kubelet_ = std::make_unique<kubelet::Kubelet>(runner, std::make_shared<InMemoryApi>(store_));
  }

  // A node that sees its object deleted ends its pods, and lets go of the object when they have
  // ended and all that they printed is here.
  void EndNodes(std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (const std::string& node : Nodes()) (void)store_->Delete(kube::Nodes(), "", node, {});
    nodes_left_ = Nodes();
    while (!nodes_left_.empty() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kLookForNodes);
      nodes_left_ = Nodes();
    }
  }

  std::vector<std::string> Nodes() const {
    std::vector<std::string> names;
    const auto nodes = store_->List(kube::Nodes(), "", {});
    if (!nodes) return names;
    for (const Json& node : nodes->items) names.push_back(node["metadata"]["name"]);
    return names;
  }

  Answer<LogFile> LogOfOwnPod(const std::string& ns, const std::string& pod,
                              const std::string& container) {
    auto log = kubelet_->LogOf(ns, pod, container);
    if (!log) {
      return tl::unexpected(
          BadRequest("container \"" + container + "\" of pod \"" + pod + "\" has no log"));
    }
    if (!log->started) {
      return tl::unexpected(
          BadRequest("container \"" + container + "\" in pod \"" + pod + "\" is waiting to start"));
    }
    return LogFile{log->file, log->offset, log->running, log->previous};
  }

  kube::Result<void> Serve() {
    auto tls = MakeTlsMaterial(options_.address);
    if (!tls) return Fail(tls.error());
    RestServerOptions options;
    options.address = options_.address;
    options.port = options_.port;
    options.tls = *tls;
    options.token = kube::RandomHex(32);
    options.crd_yaml = kEmbeddedCrd;
    options.review = options_.review;
    std::string token = options.token;
    options.logs = [this](const std::string& ns, const std::string& pod,
                          const std::string& container) {
      return collected_ ? collected_->Find(ns, pod, container) : LogOfOwnPod(ns, pod, container);
    };
    if (collected_) {
      options.take_log = [this](const Json& chunk) { return collected_->Take(chunk); };
    }
    auto server = RestServer::Start(std::move(options), store_);
    if (!server) return Fail(server.error());
    server_ = std::move(*server);
    if (!WritePrivate(kubeconfig(),
                      Kubeconfig(options_.address, server_->port(), tls->ca_pem, token))) {
      return Fail(kubeconfig().string() + ": " + std::strerror(errno));
    }
    return {};
  }

  const LocalClusterOptions options_;
  const std::string id_;
  std::unique_ptr<kubelet::ParentDeathWatchdog> watchdog_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<kubelet::Kubelet> kubelet_;  // null: nodes are other processes
  std::unique_ptr<CollectedLogs> collected_;   // null: there is a kubelet here
  std::unique_ptr<NodeMonitor> monitor_;       // null: there is a kubelet here
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<RestServer> server_;
  bool stopped_ = false;
  std::vector<std::string> nodes_left_;
};

}  // namespace

kube::Result<std::unique_ptr<LocalCluster>> LocalCluster::Start(
    const LocalClusterOptions& options) {
  auto cluster = std::make_unique<Cluster>(options, kube::RandomHex(8));
  if (auto ok = cluster->Start(); !ok) return tl::unexpected(ok.error());
  return cluster;
}

}  // namespace ringmaster::local
