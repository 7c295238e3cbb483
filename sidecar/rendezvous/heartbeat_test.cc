#include "sidecar/rendezvous/heartbeat.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "sidecar/net/address.h"

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;

// Sidecars on one loop.
class HeartbeatTest : public testing::Test {
 protected:
  Heartbeats* Add(const std::string& uid, const std::string& job = "job", int port = 0) {
    HeartbeatOptions options;
    options.job = job;
    options.self = uid;
    options.port = port;
    options.key = key_;
    options.interval = milliseconds(10);
    options.suspect_after = suspect_after_;
    HeartbeatCallbacks callbacks;
    callbacks.on_suspect = [this, uid](const std::string& peer, const std::string& why) {
      suspected_[uid + ">" + peer] = why;
    };
    callbacks.on_unreachable = [this, uid](const std::string& peer, const std::string&) {
      unreachable_.push_back(uid + ">" + peer);
    };
    callbacks.on_heard = [this, uid](const std::string& peer, const HeartbeatNews& news) {
      suspected_.erase(uid + ">" + peer);
      heard_[uid + ">" + peer] = news;
    };
    callbacks.on_refused = [this, uid](const std::string&, const std::string& why) {
      refused_[uid] = why;
    };
    auto heartbeats = Heartbeats::Listen(&loop_, options, callbacks);
    EXPECT_TRUE(heartbeats) << heartbeats.error();
    return (all_[uid] = std::move(*heartbeats)).get();
  }
  HeartbeatPeer PeerOf(const std::string& uid) {
    return {uid, net::JoinAddress("127.0.0.1", all_[uid]->port()), "", proves_};
  }

  template <typename Done>
  bool RunUntil(Done done) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < deadline) loop_.run_for(milliseconds(5));
    return done();
  }

  milliseconds suspect_after_{200};
  std::string key_ = std::string(32, 'k');  // of those that are added from now on
  bool proves_ = true;                      // what the view says of pods
  asio::io_context loop_;
  std::map<std::string, std::unique_ptr<Heartbeats>> all_;
  std::map<std::string, std::string> suspected_;
  std::map<std::string, HeartbeatNews> heard_;
  std::vector<std::string> unreachable_;
  std::map<std::string, std::string> refused_;  // by whom: why
};

TEST_F(HeartbeatTest, HearsTheNewestEpochAndStepThatThePeerKnows) {
  Add("a");
  Add("b");
  all_["b"]->SetNews({(uint64_t{1} << 40) + 7, 11});
  all_["a"]->Watch({PeerOf("b")});
  EXPECT_TRUE(RunUntil([&] { return heard_["a>b"].epoch == (uint64_t{1} << 40) + 7; }));
  EXPECT_EQ(heard_["a>b"].step, 11u);
  all_["b"]->SetNews({(uint64_t{1} << 40) + 8, uint64_t{1} << 33});
  EXPECT_TRUE(RunUntil([&] { return heard_["a>b"].epoch == (uint64_t{1} << 40) + 8; }));
  EXPECT_EQ(heard_["a>b"].step, uint64_t{1} << 33);
}

TEST_F(HeartbeatTest, AClosedConnectionIsToldAtOnceAndASuspicionOnlyWhenItLasts) {
  Add("a");
  Add("b");
  all_["a"]->Watch({PeerOf("b")});
  ASSERT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
  all_["b"]->Stop();
  ASSERT_TRUE(RunUntil([&] { return !unreachable_.empty(); }));
  EXPECT_TRUE(all_["a"]->Unreachable("b"));
  EXPECT_FALSE(all_["a"]->Suspects("b")) << suspected_["a>b"];
  ASSERT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
  EXPECT_NE(suspected_["a>b"].find("silent"), std::string::npos) << suspected_["a>b"];
  EXPECT_TRUE(all_["a"]->Suspects("b"));
  EXPECT_EQ(unreachable_, std::vector<std::string>{"a>b"}) << "said once";
}

TEST_F(HeartbeatTest, ASidecarThatIsBackAtItsAddressIsNotSuspected) {
  suspect_after_ = std::chrono::hours(1);  // however slow this machine is
  Add("a");
  Add("b");
  const int port = all_["b"]->port();
  all_["a"]->Watch({PeerOf("b")});
  ASSERT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
  all_["b"]->Stop();
  ASSERT_TRUE(RunUntil([&] { return all_["a"]->Unreachable("b"); }));
  heard_.clear();
  Add("b", "job", port);
  EXPECT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
  EXPECT_FALSE(all_["a"]->Unreachable("b"));
  EXPECT_TRUE(suspected_.empty());
}

// Of 20 pods two run; where the others listen nobody answers.
TEST_F(HeartbeatTest, InALargeViewItLooksAroundAPodWhenAsked) {
  suspect_after_ = std::chrono::hours(1);
  Add("p0");
  Add("p9");
  asio::ip::tcp::acceptor silent(loop_);
  ASSERT_TRUE(net::ListenOn(&silent, "127.0.0.1", 0, "TEST"));
  const std::string nobody = net::JoinAddress("127.0.0.1", silent.local_endpoint().port());
  std::vector<HeartbeatPeer> pods;
  for (int i = 0; i < 20; ++i) {
    const std::string uid = "p" + std::to_string(i);
    pods.push_back(all_.count(uid) > 0 ? PeerOf(uid) : HeartbeatPeer{uid, nobody, ""});
  }
  all_["p0"]->Watch(pods);
  EXPECT_EQ(all_["p0"]->LookAround("p9").size(), 17u) << "p1 to p17";
  ASSERT_TRUE(RunUntil([&] { return heard_.count("p0>p9") > 0; }));
  const std::vector<std::string> unsettled = all_["p0"]->LookAround("p9");
  EXPECT_EQ(unsettled.size(), 16u);
  EXPECT_EQ(std::count(unsettled.begin(), unsettled.end(), "p9"), 0) << "it has answered";
  pods.resize(16);
  all_["p0"]->Watch(pods);
  EXPECT_TRUE(all_["p0"]->LookAround("p9").empty()) << "all watch all";
}

// No descriptor is left in this process until the end of the scope.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int lowest_free = dup(STDERR_FILENO);
    close(lowest_free);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest_free);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST_F(HeartbeatTest, WhoHasNoDescriptorLeftAccusesNobody) {
  Add("a");
  Add("b");
  {
    const NoDescriptors none;
    all_["a"]->Watch({PeerOf("b")});
    const auto end = std::chrono::steady_clock::now() + 3 * suspect_after_;
    while (std::chrono::steady_clock::now() < end) loop_.run_for(milliseconds(5));
    EXPECT_TRUE(suspected_.empty()) << suspected_["a>b"];
    EXPECT_TRUE(unreachable_.empty());
    EXPECT_EQ(heard_.count("a>b"), 0u) << "it could dial";
  }
  EXPECT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
}

TEST_F(HeartbeatTest, SuspectsAPodThatAcceptsButNeverAnswers) {
  Add("a");
  asio::ip::tcp::acceptor silent(loop_);
  ASSERT_TRUE(net::ListenOn(&silent, "127.0.0.1", 0, "TEST"));
  all_["a"]->Watch({{"b", net::JoinAddress("127.0.0.1", silent.local_endpoint().port()), ""}});
  ASSERT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
  EXPECT_NE(suspected_["a>b"].find("silent"), std::string::npos);
  EXPECT_GT(all_["a"]->missed(), 0u);
}

TEST_F(HeartbeatTest, SuspectsAPodWhoseAddressNowBelongsToAnother) {
  Add("a");
  Add("c");
  all_["a"]->Watch({{"b", PeerOf("c").address, ""}});
  ASSERT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
  EXPECT_NE(suspected_["a>b"].find("another pod"), std::string::npos);
}

TEST_F(HeartbeatTest, TurnsAwayPodsOfAnotherJob) {
  Add("a");
  Add("b", "another-job");
  all_["a"]->Watch({PeerOf("b")});
  EXPECT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
}

TEST_F(HeartbeatTest, TakesSuspicionBackWhenThePodAnswersAgain) {
  Add("a");
  asio::ip::tcp::acceptor reserved(loop_);
  ASSERT_TRUE(net::ListenOn(&reserved, "127.0.0.1", 0, "TEST"));
  int port = reserved.local_endpoint().port();
  reserved.close();
  all_["a"]->Watch({{"b", net::JoinAddress("127.0.0.1", port), ""}});
  ASSERT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
  Add("b", "job", port);
  EXPECT_TRUE(RunUntil([&] { return suspected_.empty(); }));
}

// A peer whose first connection dies without a word after one echo, as over a link that is cut, and
// that answers the second one.
class CutPeer {
 public:
  static constexpr int kOn = 1'000'000;  // echoes: it isn't cut
  explicit CutPeer(asio::io_context* loop, int echoes_at_first = 1)
      : acceptor_(*loop), echoes_at_first_(echoes_at_first) {
    EXPECT_TRUE(net::ListenOn(&acceptor_, "127.0.0.1", 0, "TEST"));
    Accept();
  }
  std::string address() const {
    return net::JoinAddress("127.0.0.1", acceptor_.local_endpoint().port());
  }

 private:
  struct Session {
    Session(asio::ip::tcp::socket accepted, int echoes)
        : socket(std::move(accepted)), echoes_left(echoes) {}
    asio::ip::tcp::socket socket;
    asio::streambuf line{512};
    std::array<char, 16> beat{};
    int echoes_left;
  };

  void Accept() {
    acceptor_.async_accept([this](std::error_code error, asio::ip::tcp::socket socket) {
      if (error) return;
      auto session =
          std::make_shared<Session>(std::move(socket), sessions_.empty() ? echoes_at_first_ : kOn);
      sessions_.push_back(session);
      asio::async_read_until(session->socket, session->line, '\n',
                             [this, session](std::error_code read, size_t) {
                               if (!read) Write(session, "RMHB2 b\n", 8);
                             });
      Accept();
    });
  }
  void Write(const std::shared_ptr<Session>& session, const char* data, size_t size) {
    asio::async_write(session->socket, asio::buffer(data, size),
                      [this, session](std::error_code error, size_t) {
                        if (!error && session->echoes_left-- > 0) Read(session);
                      });
  }
  void Read(const std::shared_ptr<Session>& session) {
    asio::async_read(session->socket, asio::buffer(session->beat),
                     [this, session](std::error_code error, size_t) {
                       if (!error) Write(session, session->beat.data(), session->beat.size());
                     });
  }

  asio::ip::tcp::acceptor acceptor_;
  int echoes_at_first_;
  std::vector<std::shared_ptr<Session>> sessions_;
};

// A sidecar of a version before there were proofs; also what somebody says who has no key.
TEST_F(HeartbeatTest, WhoProvesNothingIsHeardOnlyWhereTheViewDoesNotSayThatItProves) {
  Add("a");
  CutPeer peer(&loop_);
  all_["a"]->Watch({{"b", peer.address(), "", /*proves=*/true}});
  ASSERT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
  EXPECT_EQ(heard_.count("a>b"), 0u);
  EXPECT_GT(all_["a"]->refused(), 0u);
  EXPECT_NE(refused_["a"].find("proves nothing"), std::string::npos) << refused_["a"];
  all_["a"]->Watch({});
  all_["a"]->Watch({{"b", peer.address(), "", /*proves=*/false}});
  EXPECT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
}

TEST_F(HeartbeatTest, WhoIsKnownToProveOnlyByALaterViewIsNotBelievedOnWithoutAProof) {
  Add("a");
  CutPeer peer(&loop_, CutPeer::kOn);
  all_["a"]->Watch({{"b", peer.address(), "", /*proves=*/false}});
  ASSERT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
  all_["a"]->Watch({{"b", peer.address(), "", /*proves=*/true}});
  heard_.clear();
  EXPECT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
  EXPECT_EQ(heard_.count("a>b"), 0u);
}

TEST_F(HeartbeatTest, WhoHasProvenTheKeyHasToGoOnProvingIt) {
  Add("a");
  Add("b");
  const int port = all_["b"]->port();
  proves_ = false;  // as in a view that a sidecar of a version without proofs proposed
  all_["a"]->Watch({PeerOf("b")});
  ASSERT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
  all_["b"]->Stop();
  ASSERT_TRUE(RunUntil([&] { return all_["a"]->Unreachable("b"); }));
  heard_.clear();
  key_.clear();  // another process takes its port, and says that it is b
  Add("b", "job", port);
  EXPECT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
  EXPECT_EQ(heard_.count("a>b"), 0u);
  EXPECT_GT(all_["a"]->refused(), 0u);
}

// A job in the middle of an upgrade: two sidecars prove, one is of a version before that, and views
// are proposed by either kind. Those of the old one say of nobody that it proves.
TEST_F(HeartbeatTest, PodsOfBothVersionsHearEachOtherWhoeverProposesTheViews) {
  Add("a");
  Add("b");
  key_.clear();
  Add("old");
  for (const bool by_the_old_one : {false, true, false}) {
    std::vector<HeartbeatPeer> pods;
    for (const std::string uid : {"a", "b", "old"}) {
      proves_ = !by_the_old_one && uid != "old";
      pods.push_back(PeerOf(uid));
    }
    for (const auto& [uid, heartbeats] : all_) heartbeats->Watch(pods);
    heard_.clear();
    EXPECT_TRUE(RunUntil([&] { return heard_.size() == 6; })) << by_the_old_one;
  }
  EXPECT_TRUE(suspected_.empty());
  EXPECT_TRUE(refused_.empty());
}

TEST_F(HeartbeatTest, WhoHoldsAnotherKeyIsNotHeard) {
  Add("a");
  key_ = std::string(32, 'x');
  Add("b");
  proves_ = false;
  all_["a"]->Watch({PeerOf("b")});
  EXPECT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
  EXPECT_EQ(heard_.count("a>b"), 0u);
  EXPECT_NE(refused_["a"].find("does not prove the job's key"), std::string::npos);
}

TEST_F(HeartbeatTest, AJobWithoutAKeyAsksForNoProof) {
  key_.clear();
  Add("a");
  Add("b");
  all_["a"]->Watch({PeerOf("b")});
  EXPECT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
}

// Hands on at once what one side says; what the other one answers it keeps, and lets out one echo
// at a time: enough for a sidecar that takes every echo for a sign of life, and more and more in
// stock.
class HoldingProxy {
 public:
  HoldingProxy(asio::io_context* loop, const std::string& target)
      : acceptor_(*loop), to_(*loop), release_(*loop) {
    EXPECT_TRUE(net::ListenOn(&acceptor_, "127.0.0.1", 0, "TEST"));
    const asio::ip::tcp::endpoint endpoint = net::ParseEndpoint(target).value();
    acceptor_.async_accept([this, endpoint](std::error_code error, asio::ip::tcp::socket socket) {
      if (error) return;
      from_.emplace(std::move(socket));
      to_.connect(endpoint);
      HandOn();
      Keep();
    });
  }
  ~HoldingProxy() { release_.cancel(); }
  std::string address() const {
    return net::JoinAddress("127.0.0.1", acceptor_.local_endpoint().port());
  }

 private:
  void HandOn() {
    from_->async_read_some(asio::buffer(there_), [this](std::error_code error, size_t bytes) {
      if (error) return;
      asio::write(to_, asio::buffer(there_, bytes), error);
      HandOn();
    });
  }
  void Keep() {
    to_.async_read_some(asio::buffer(back_), [this](std::error_code error, size_t bytes) {
      if (error) return;
      kept_.append(back_.data(), bytes);
      if (!welcomed_ && kept_.find('\n') != std::string::npos) {
        welcomed_ = true;
        LetOut(kept_.find('\n') + 1);
        ReleaseOne();
      }
      Keep();
    });
  }
  void ReleaseOne() {
    LetOut(std::min<size_t>(kept_.size(), 48));
    release_.expires_after(milliseconds(50));
    release_.async_wait([this](std::error_code cancelled) {
      if (!cancelled) ReleaseOne();
    });
  }
  void LetOut(size_t bytes) {
    std::error_code ignored;
    asio::write(*from_, asio::buffer(kept_.data(), bytes), ignored);
    kept_.erase(0, bytes);
  }

  asio::ip::tcp::acceptor acceptor_;
  std::optional<asio::ip::tcp::socket> from_;
  asio::ip::tcp::socket to_;
  asio::steady_timer release_;
  std::array<char, 4096> there_{}, back_{};
  std::string kept_;
  bool welcomed_ = false;
};

TEST_F(HeartbeatTest, EchoesThatWereHeldBackAreNoSignOfLife) {
  Add("a");
  Add("b");
  HoldingProxy proxy(&loop_, PeerOf("b").address);
  all_["a"]->Watch({{"b", proxy.address(), "", true}});
  ASSERT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
  EXPECT_TRUE(RunUntil([&] { return suspected_.count("a>b") > 0; }));
}

// A client that says its line, hears the answer of so many bytes, beats, and hears as many as the
// beat has; while the loop runs.
std::string Exchange(int port, const std::string& hello, size_t welcome, const std::string& beat) {
  asio::io_context own;
  asio::ip::tcp::socket socket(own);
  socket.connect({asio::ip::make_address("127.0.0.1"), static_cast<uint16_t>(port)});
  std::string heard(welcome + beat.size(), '\0');
  std::error_code error;
  asio::write(socket, asio::buffer(hello), error);
  size_t bytes = asio::read(socket, asio::buffer(heard.data(), welcome), error);
  asio::write(socket, asio::buffer(beat), error);
  bytes += asio::read(socket, asio::buffer(heard.data() + bytes, heard.size() - bytes), error);
  heard.resize(bytes);
  return heard;
}

TEST_F(HeartbeatTest, AWatcherOfAVersionWithoutProofsIsAnsweredAsItExpects) {
  Add("b");
  all_["b"]->SetNews({0x0102, 3});
  auto heard = std::async(std::launch::async, Exchange, all_["b"]->port(), "RMHB2 job a\n", 8,
                          std::string(16, '\0'));
  ASSERT_TRUE(
      RunUntil([&] { return heard.wait_for(milliseconds(0)) == std::future_status::ready; }));
  EXPECT_EQ(heard.get(), std::string("RMHB2 b\n\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 24));
}

TEST_F(HeartbeatTest, ABeatWithoutItsProofIsNotAnswered) {
  Add("b");
  const std::string hello = WriteHello({"job", "a", MakeHeartbeatNonce()});
  const size_t welcome = WriteWelcome({"b", std::string(64, '0'), std::string(64, '0')}).size();
  auto heard = std::async(std::launch::async, Exchange, all_["b"]->port(), hello, welcome,
                          std::string(48, '\0'));
  ASSERT_TRUE(
      RunUntil([&] { return heard.wait_for(milliseconds(0)) == std::future_status::ready; }));
  EXPECT_EQ(heard.get().size(), welcome);
  EXPECT_EQ(all_["b"]->refused(), 1u);
}

// More than a sidecar answers; they say their line, and no more.
std::vector<asio::ip::tcp::socket> Strangers(asio::io_context* loop, const std::string& address) {
  const asio::ip::tcp::endpoint endpoint = net::ParseEndpoint(address).value();
  std::vector<asio::ip::tcp::socket> strangers;
  for (int i = 0; i < 260; ++i) {
    strangers.emplace_back(*loop).connect(endpoint);
    asio::write(strangers.back(), asio::buffer(std::string("RMHB2 job x\n")));
    loop->poll();
  }
  return strangers;
}

TEST_F(HeartbeatTest, StrangersDoNotTakeThePlacesOfThoseThatWatch) {
  Add("a");
  Add("b");
  const auto strangers = Strangers(&loop_, PeerOf("b").address);
  all_["a"]->Watch({PeerOf("b")});
  EXPECT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
}

TEST_F(HeartbeatTest, StrangersDoNotTakeThePlaceOfAWatcherOfAVersionWithoutProofs) {
  Add("b");
  key_.clear();
  proves_ = false;
  Add("old");
  all_["old"]->Watch({PeerOf("b")});
  ASSERT_TRUE(RunUntil([&] { return heard_.count("old>b") > 0; }));
  const auto strangers = Strangers(&loop_, PeerOf("b").address);
  heard_.clear();
  EXPECT_TRUE(RunUntil([&] { return heard_.count("old>b") > 0; }));
  EXPECT_TRUE(unreachable_.empty()) << "it has kept its connection";
}

TEST_F(HeartbeatTest, ASilentConnectionIsGivenUpForANewOne) {
  Add("a");
  CutPeer peer(&loop_);
  all_["a"]->Watch({{"b", peer.address(), ""}});
  ASSERT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; }));
  heard_.clear();  // that was the only echo of the first connection
  EXPECT_TRUE(RunUntil([&] { return heard_.count("a>b") > 0; })) << "heard on another connection";
  EXPECT_TRUE(suspected_.empty());
  EXPECT_TRUE(unreachable_.empty()) << "its own hanging up is no sign of the peer";
}

// Pods p0 to p23, of which p8 to p15 accept connections and say nothing.
TEST_F(HeartbeatTest, OneLatePodHasThoseAroundItLookedAt) {
  std::vector<HeartbeatPeer> pods;
  std::vector<std::unique_ptr<asio::ip::tcp::acceptor>> silent;
  for (int i = 0; i < 24; ++i) {
    const std::string uid = "p" + std::to_string(i);
    if (i >= 8 && i < 16) {
      silent.push_back(std::make_unique<asio::ip::tcp::acceptor>(loop_));
      ASSERT_TRUE(net::ListenOn(silent.back().get(), "127.0.0.1", 0, "TEST"));
      pods.push_back(
          {uid, net::JoinAddress("127.0.0.1", silent.back()->local_endpoint().port()), ""});
    } else {
      Add(uid);
      pods.push_back(PeerOf(uid));
    }
  }
  all_["p7"]->Watch(pods);
  all_["p16"]->Watch(pods);
  EXPECT_TRUE(RunUntil([&] { return suspected_.size() == 16; }))
      << suspected_.size() << " suspicions of 8 pods by two";
}

TEST_F(HeartbeatTest, ForgetsWhoIsNoLongerWatched) {
  Add("a");
  Add("b");
  all_["a"]->Watch({PeerOf("b")});
  loop_.run_for(milliseconds(50));
  all_["a"]->Watch({});
  all_["b"]->Stop();
  loop_.run_for(milliseconds(100));
  EXPECT_TRUE(suspected_.empty());
}

TEST(ParseEndpoint, TakesNumericHostsOnly) {
  using asio::ip::make_address;
  using asio::ip::tcp;
  EXPECT_EQ(net::ParseEndpoint("127.0.0.1:80"), tcp::endpoint(make_address("127.0.0.1"), 80));
  EXPECT_EQ(net::ParseEndpoint("[::1]:80"), tcp::endpoint(make_address("::1"), 80));
  for (const char* bad : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:99999",
                          "host:80", "1.2.3.4:80x"}) {
    EXPECT_EQ(net::ParseEndpoint(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace ringmaster::rendezvous
