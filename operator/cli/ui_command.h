// `ringmaster ui`, and the page of `ringmaster run --ui`.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"
#include "operator/page/observatory.h"
#include "operator/page/ui_server.h"

namespace ringmaster::cli {

// A page that is served, until it is closed.
class Page {
 public:
  Page() = default;
  // `to.ns` empty: the jobs of all namespaces. `port` 0: a free one.
  static Outcome<Page> Open(const inspection::Connection& to, int port,
                            std::chrono::milliseconds interval);
  void Close() {
    server_.reset();
    observatory_.reset();
  }
  std::string address() const { return server_->address(); }

 private:
  std::unique_ptr<page::Observatory> observatory_;
  std::unique_ptr<page::UiServer> server_;  // uses the observatory
};

// Until Ctrl-C, or until the run that it shows is over.
Outcome<void> Ui(const UiOptions& options, const Surroundings& around);

}  // namespace ringmaster::cli
