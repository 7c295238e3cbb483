// What it costs the operator to hear of a change of a large view: each sidecar reports it twice,
// when it has installed the view and when its workers have built it. Sidecars' sessions and the
// operator's intake are the product's; the streams between them are played.
//
//   build/release/bin/view_report_cost [PODS ...]
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/membership/view.h"
#include "operator/app/report_intake.h"
#include "operator/controllers/sidecar_registry.h"
#include "sidecar/rendezvous/operator_session.h"

namespace {

using namespace ringmaster;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string Uid(int i) { return "0b7d6a2e-3d3f-4b7c-9f0e-" + std::to_string(100'000'000'000 + i); }

membership::ViewPtr View(int pods) {
  membership::View view;
  view.epoch = membership::MakeEpoch(1, 2);
  view.parent = membership::MakeEpoch(1, 1);
  view.reason = membership::Reason::kPodLost;
  view.coordinator = Uid(0);
  for (int i = 0; i < pods; ++i) {
    const std::string n = std::to_string(i);
    const std::string host = "10." + std::to_string(i >> 8) + "." + std::to_string(i & 255) + ".7";
    membership::Pod pod;
    pod.uid = Uid(i);
    pod.name = "training-worker-" + n;
    pod.incarnation = 1;
    pod.node = "node-" + n;
    pod.address = host + ":9401";
    pod.heartbeat = host + ":9402";
    pod.http = host + ":9403";
    view.pods.push_back(pod);
    view.ranks.push_back(
        {.pod = static_cast<std::uint32_t>(i), .incarnation = 1, .tcp = host + ":40123"});
  }
  return std::make_shared<const membership::View>(std::move(view));
}

// The operator's end of one stream.
class Stream final : public rendezvous::ReportSink {
 public:
  struct Cost {
    std::size_t reports = 0, bytes = 0;
    double cpu = 0;
  };

  Stream(controllers::SidecarRegistry* registry, Cost* cost)
      : intake_(registry, {.why_not_its_job = [](const auto&) { return ""; },
                           .on_accepted = [this](auto notice) { welcome_ = std::move(notice); },
                           .sink = nullptr}),
        cost_(cost) {}

  bool Send(const rendezvous::QueuedReport& queued) override {
    const std::string text = queued.report.SerializeAsString();
    const double begin = CpuSeconds();
    v1::SidecarReport report;
    report.ParseFromString(text);
    const auto result = intake_.Take(report);
    cost_->cpu += CpuSeconds() - begin;
    cost_->bytes += text.size();
    ++cost_->reports;
    if (result.why.empty()) return true;
    std::exit((std::fprintf(stderr, "not taken: %s\n", result.why.c_str()), 1));
  }
  const v1::OperatorNotice& welcome() const { return welcome_; }

 private:
  app::ReportIntake intake_;
  Cost* const cost_;
  v1::OperatorNotice welcome_;
};

void Measure(int pods, bool asks_for_views) {
  controllers::SidecarRegistry registry;
  registry.SetPodLookup([](const auto&) { return true; });
  Stream::Cost cost;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<rendezvous::OperatorSession>> sessions;
  rendezvous::OperatorCallbacks callbacks;
  callbacks.on_connection = [](bool) {};
  callbacks.on_accepted = [] {};
  for (int i = 0; i < pods; ++i) {
    job::Registration registration;
    registration.job_namespace = "team";
    registration.job_name = registration.job_uid = "training";
    registration.pod_name = "training-worker-" + std::to_string(i);
    registration.pod_uid = Uid(i);
    streams.push_back(std::make_unique<Stream>(&registry, &cost));
    sessions.push_back(std::make_unique<rendezvous::OperatorSession>(registration, callbacks));
    sessions.back()->Begin(streams.back().get());
    v1::OperatorNotice welcome = streams.back()->welcome();
    welcome.mutable_accepted()->set_asks_for_views(asks_for_views);
    sessions.back()->OnNotice(welcome);
  }
  cost = {};
  const membership::ViewPtr view = View(pods);
  const std::string rebuilt = R"({"epoch": 1099511627778, "reason": "PodLost", "stepsLost": 0,
      "seconds": {"detect": 0.03, "decide": 0.01, "connect": 0.004, "redo": 0.001}})";
  for (const char* figures : {"", rebuilt.c_str()}) {
    for (const auto& session : sessions) session->ReportView(view, figures, 1000);
  }
  std::printf("| %d pods | %s | %zu | %.2f MB | %.0f ms |\n", pods,
              asks_for_views ? "the coordinator's" : "everybody's", cost.reports,
              static_cast<double>(cost.bytes) / 1e6, cost.cpu * 1e3);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kMostWhole = 1000;
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    sizes.push_back(std::atoi(argv[i]));
    if (sizes.back() < 2 || sizes.back() > 10'000) {
      std::fprintf(stderr, "PODS: is '%s', allowed is 2 to 10000\n", argv[i]);
      return 2;
    }
  }
  if (sizes.empty()) sizes = {100, 1000, 10'000};
  std::printf(
      "| what | whole views are | reports | bytes | CPU of the operator |\n"
      "|---|---|---|---|---|\n");
  for (const int pods : sizes) {
    if (pods <= kMostWhole) Measure(pods, false);
    Measure(pods, true);
  }
  return 0;
}
