#include "operator/cli/ui_command.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include "common/sync/mutex.h"
#include "operator/cli/signals.h"

namespace ringmaster::cli {
namespace {

constexpr std::chrono::milliseconds kRunCheckPeriod{500};  // whether the run is alive yet

}  // namespace

Outcome<Page> Page::Open(const inspection::Connection& to, int port,
                         std::chrono::milliseconds interval) {
  Page page;
  page.observatory_ = std::make_unique<page::Observatory>(
      page::SourceOf(to), page::Observatory::Options{.interval = interval});
  auto server = page::UiServer::Start(page.observatory_.get(), port);
  if (!server) return Fail(ExitCode::kMachineLacks, "the page: " + server.error());
  page.server_ = std::move(*server);
  return page;
}

Outcome<void> Ui(const UiOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kLook);
  if (!to) return tl::unexpected(to.error());
  if (options.all_namespaces) to->ns.clear();
  sync::Mutex mu;
  sync::CondVar changed;
  bool interrupted = false;
  SignalThread signals([&](int, int) {
    sync::MutexLock lock(&mu);
    interrupted = true;
    changed.NotifyAll();
  });
  auto page = Page::Open(*to, options.port, options.interval);
  if (!page) return tl::unexpected(page.error());
  std::printf("%s\nCtrl-C ends it.\n", page->address().c_str());
  std::fflush(stdout);
  sync::MutexLock lock(&mu);
  while (!interrupted && (to->run_dir.empty() || !HasEnded(to->run_dir)))
    (void)changed.WaitFor(&mu, kRunCheckPeriod);
  return {};
}

}  // namespace ringmaster::cli
