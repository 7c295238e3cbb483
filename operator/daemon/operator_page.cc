#include "operator/daemon/operator_page.h"

#include <optional>
#include <utility>

#include "operator/app/http_endpoints.h"
#include "operator/app/operator_link.h"
#include "operator/daemon/page_gate.h"
#include "operator/daemon/page_source.h"
#include "operator/page/observatory.h"
#include "operator/page/page_answers.h"

namespace ringmaster::daemon {
namespace {

// What is kept is some 100 MiB at the most, however many jobs there are and whatever their pods
// answer: mostly the values of the samples.
constexpr page::Observatory::Options kOptions = {
    .interval = std::chrono::milliseconds(1000),
    .jobs = 16,
    .asked_within = std::chrono::seconds(120),
    .gone = 16,
    .limits = {.samples = 600, .ranks = 64, .changes = 200}};

class OperatorPage final : public app::Page {
 public:
  OperatorPage(app::PageInputs inputs, bool over_tls)
      : observatory_(
            std::make_shared<PageSource>(std::move(inputs.sample), std::move(inputs.reads)),
            kOptions),
        gate_(std::make_unique<app::AccessReview>(std::move(inputs.reviews)), over_tls) {}
  ~OperatorPage() override {
    if (endpoint_ != nullptr) endpoint_->Stop();
  }

  kube::Result<void> Listen(const std::string& where, bool over_tls) {
    std::optional<http::Certificate> certificate;
    if (over_tls) {
      certificate = app::HttpEndpoints::OwnCertificate("page.operator.ringmaster.dev");
    }
    auto endpoint = app::HttpEndpoints::Listen(
        "--page-listen", where,
        [this](const http::Request& request) {
          return page::PageAnswer(&observatory_, request,
                                  [this](const http::Request& r) { return gate_.Admit(r); });
        },
        std::move(certificate));
    if (!endpoint) return tl::unexpected(endpoint.error());
    endpoint_ = std::move(*endpoint);
    return {};
  }
  int port() const override { return endpoint_->port(); }

 private:
  page::Observatory observatory_;
  PageGate gate_;                                 // used by the endpoint's thread alone
  std::unique_ptr<app::HttpEndpoints> endpoint_;  // last: uses the others
};

}  // namespace

kube::Result<std::unique_ptr<app::Page>> OpenOperatorPage(app::PageInputs inputs) {
  const std::string where = inputs.listen;
  const bool over_tls = !app::IsLocalAddress(where);
  auto page = std::make_unique<OperatorPage>(std::move(inputs), over_tls);
  if (auto listens = page->Listen(where, over_tls); !listens) {
    return tl::unexpected(listens.error());
  }
  return page;
}

}  // namespace ringmaster::daemon
