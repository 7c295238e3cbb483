// A gRPC server and client over loopback, with every kind of good and bad certificate.
#include "common/tls/credentials.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/tls/certificate.h"
#include "common/tls/memory_file.h"
#include "rendezvous.grpc.pb.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::tls {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr char kOurs[] = "uid-1.job.ringmaster.dev";

// Counts calls, and refuses those whose peer has not proved to be `only`.
class Service final : public v1::Rendezvous::Service {
 public:
  grpc::Status Deliver(grpc::ServerContext* context, const v1::MemberMessage*,
                       v1::Delivered*) override {
    if (!HasName(context->auth_context(), kOurs)) {
      return {grpc::StatusCode::PERMISSION_DENIED, "another job"};
    }
    return grpc::Status::OK;
  }
};

class CredentialsTest : public testing::Test {
 protected:
  void SetUp() override {
    old_logger_ = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
  }
  void TearDown() override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    spdlog::set_default_logger(old_logger_);
  }

  // A directory like a mounted Secret.
  Files Write(const std::string& name, const KeyPair& pair, const std::string& ca) {
    const auto dir = dir_ / name;
    std::filesystem::create_directories(dir);
    const Files files = FilesIn(dir);
    // Each file is replaced by rename, so that nobody reads half of one.
    const std::pair<std::string, std::string> contents[] = {
        {files.ca, ca}, {files.certificate, pair.certificate_pem}, {files.key, pair.key_pem}};
    for (const auto& [path, text] : contents) {
      std::ofstream(path + ".new") << text;
      std::filesystem::rename(path + ".new", path);
    }
    return files;
  }
  KeyPair Make(const std::string& name, Time now = std::chrono::system_clock::now()) {
    return *Issue(ca_, {name}, now, hours(24));
  }
  Files Good(const std::string& name) { return Write(name, Make(kOurs), ca_.certificate_pem); }

  void Serve(const Files& files, PeerName clients = {.exact = kOurs}) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", ServerCredentials(files, clients), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  grpc::Status Call(const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                    seconds limit = seconds(20)) {
    // The channel has a pool of its own, or gRPC would reuse the connection of an earlier call.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto stub =
        v1::Rendezvous::NewStub(grpc::CreateCustomChannel(address_, credentials, arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    v1::Delivered reply;
    return stub->Deliver(&context, {}, &reply);
  }
  grpc::Status Call(const Files& files, PeerName server = {.exact = kOurs}) {
    return Call(ChannelCredentials(files, server));
  }
  std::string Log() {
    spdlog::default_logger()->flush();
    return log_.str();
  }

  const support::TempDir temp_;
  const std::filesystem::path dir_ = temp_.path();
  const KeyPair ca_ = *MakeAuthority(std::chrono::system_clock::now(), hours(240));
  const KeyPair other_ca_ = *MakeAuthority(std::chrono::system_clock::now(), hours(240));
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> old_logger_;
};

TEST_F(CredentialsTest, TwoOfOneJobTalk) {
  Serve(Good("server"));
  const grpc::Status status = Call(Good("client"));
  EXPECT_TRUE(status.ok()) << status.error_message() << Log();
  EXPECT_EQ(Log(), "");
}

TEST_F(CredentialsTest, AClientOfAnotherAuthorityIsRefused) {
  Serve(Good("server"));
  // It trusts our authority, so that only the server can refuse.
  const auto pair = *Issue(other_ca_, {kOurs}, std::chrono::system_clock::now(), hours(24));
  EXPECT_FALSE(Call(Write("client", pair, ca_.certificate_pem)).ok());
  EXPECT_THAT(Log(), HasSubstr("certificate of the client is refused: it was signed by another"));
}

TEST_F(CredentialsTest, AClientOfAnotherJobIsRefused) {
  Serve(Good("server"));
  EXPECT_FALSE(Call(Write("client", Make(JobName("uid-2")), ca_.certificate_pem)).ok());
  EXPECT_THAT(Log(), HasSubstr("certificate of the client is for uid-2.job.ringmaster.dev, "
                               "wanted: uid-1.job.ringmaster.dev"));
}

TEST_F(CredentialsTest, AClientWhoseCertificateHasExpiredIsRefused) {
  Serve(Good("server"));
  const auto past = std::chrono::system_clock::now() - hours(25);
  EXPECT_FALSE(Call(Write("client", Make(kOurs, past), ca_.certificate_pem)).ok());
  EXPECT_THAT(Log(), HasSubstr("certificate of the client is refused: it expired at"));
}

TEST_F(CredentialsTest, AClientWithoutACertificateIsRefused) {
  Serve(Good("server"));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ca_.certificate_pem;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kOurs);
  auto stub = v1::Rendezvous::NewStub(
      grpc::CreateCustomChannel(address_, grpc::SslCredentials(options), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(20));
  v1::Delivered reply;
  EXPECT_FALSE(stub->Deliver(&context, {}, &reply).ok());
  EXPECT_THAT(Log(), HasSubstr("the client has no certificate"));
}

TEST_F(CredentialsTest, AClientWithoutTlsIsRefused) {
  Serve(Good("server"));
  EXPECT_FALSE(Call(grpc::InsecureChannelCredentials()).ok());
}

TEST_F(CredentialsTest, AServerOfAnotherAuthorityIsRefused) {
  const auto pair = *Issue(other_ca_, {kOurs}, std::chrono::system_clock::now(), hours(24));
  Serve(Write("server", pair, ca_.certificate_pem));
  EXPECT_FALSE(Call(Good("client")).ok());
  EXPECT_THAT(Log(), HasSubstr("certificate of the server is refused: it was signed by another"));
}

TEST_F(CredentialsTest, AJobCanNotPassForTheOperator) {
  Serve(Good("server"));
  EXPECT_FALSE(Call(Good("client"), {.exact = kOperatorName}).ok());
  EXPECT_THAT(Log(), HasSubstr("certificate of the server is for uid-1.job.ringmaster.dev, "
                               "wanted: operator.ringmaster.dev"));
}

TEST_F(CredentialsTest, AServerThatLetsInManyNamesSeesWhichOneCalls) {
  Serve(Good("server"), {.suffix = kJobDomain});
  EXPECT_TRUE(Call(Good("client")).ok());
  const Files other = Write("other", Make(JobName("uid-2")), ca_.certificate_pem);
  EXPECT_EQ(Call(other).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  for (const char* name : {"job.ringmaster.dev", ".job.ringmaster.dev", kOperatorName,
                           "a.name.of.some.length.example.com"}) {
    const Files nobody = Write("nobody", Make(name), ca_.certificate_pem);
    EXPECT_EQ(Call(nobody).error_code(), grpc::StatusCode::UNAVAILABLE) << name;
  }
  EXPECT_THAT(Log(), HasSubstr("wanted: a name that ends with .job.ringmaster.dev"));
}

TEST(HasNameTest, NobodyHasOneWithoutTls) { EXPECT_FALSE(HasName(nullptr, kOurs)); }

TEST_F(CredentialsTest, NewFilesAreTakenUpWithoutARestart) {
  const auto past = std::chrono::system_clock::now() - hours(25);
  Serve(Write("server", Make(kOurs, past), ca_.certificate_pem));
  const auto client = ChannelCredentials(Good("client"), {.exact = kOurs});
  EXPECT_FALSE(Call(client).ok()) << "the server's certificate has expired";
  Good("server");
  const auto end = std::chrono::steady_clock::now() + seconds(20);
  while (!Call(client).ok() && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_TRUE(Call(client).ok()) << Log();
  // The client reads its files again, too. This also changes the authority: both sides trust the
  // next one beside the old one.
  Write("server", *Issue(other_ca_, {kOurs}, std::chrono::system_clock::now(), hours(24)),
        other_ca_.certificate_pem + ca_.certificate_pem);
  while (Call(client).ok() && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_FALSE(Call(client).ok()) << "it has not heard of the new authority";
  Write("client", Make(kOurs), other_ca_.certificate_pem + ca_.certificate_pem);
  while (!Call(client).ok() && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_TRUE(Call(client).ok()) << Log();
}

TEST_F(CredentialsTest, FilesInMemoryServeAsWell) {
  const KeyPair pair = Make(kOurs);
  auto ca = MemoryFile::Create(ca_.certificate_pem), key = MemoryFile::Create(pair.key_pem);
  auto certificate = MemoryFile::Create(pair.certificate_pem);
  ASSERT_TRUE(ca && key && certificate);
  Serve({(*ca)->path(), (*certificate)->path(), (*key)->path()});
  EXPECT_TRUE(Call(Good("client")).ok()) << Log();
}

TEST_F(CredentialsTest, FilesThatCanNotBeUsedAreNamed) {
  EXPECT_EQ(WhyNotUsable(Good("good"), kOurs), "");
  Files files = Good("bad");
  std::filesystem::remove(files.ca);
  EXPECT_THAT(WhyNotUsable(files, kOurs), HasSubstr("/bad/ca.crt is not there"));
  files = Write("bad", {Make(kOurs).certificate_pem, Make(kOurs).key_pem}, ca_.certificate_pem);
  EXPECT_THAT(WhyNotUsable(files, kOurs), HasSubstr("tls.key is not the key of "));
  files = Write("bad", {"nonsense", Make(kOurs).key_pem}, ca_.certificate_pem);
  EXPECT_THAT(WhyNotUsable(files, kOurs), HasSubstr("tls.crt: no certificate in PEM form"));
  EXPECT_THAT(WhyNotUsable(Good("good"), JobName("uid-2")),
              HasSubstr(std::string("tls.crt is for ") + kOurs + ", and not for uid-2.job."));
}

}  // namespace
}  // namespace ringmaster::tls
