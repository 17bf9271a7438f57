// SPDX-License-Identifier: Apache-2.0
// Real sockets: well-behaved, slow, greedy and senseless clients.
#include "daemon/serve/metrics_server.h"

#include "config/listening_socket.h"
#include "daemon/serve/http.h"
#include "tests/patience.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

using config::ListenAddress;
using Clock = std::chrono::steady_clock;

const std::string kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
const ListenAddress kAnyPort{ListenAddress::Kind::inet, "127.0.0.1", 0, ""};
// A deadline that no test lives to see. A connection that ends before it does not end because of it.
constexpr std::uint64_t kHourUsec = 3'600'000'000;

// A non-blocking client.
class Client {
 public:
  explicit Client(int family) : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connect_to(std::uint16_t port) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(fd_, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0 || errno == EINPROGRESS;
  }
  bool connect_to(const std::string& path) {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::memcpy(where.sun_path, path.c_str(), path.size() + 1);
    return connect(fd_, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0;
  }
  // The part that the kernel takes.
  std::size_t say(const std::string& text) {
    const ssize_t count = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }
  void take_little() {
    const int bytes = 4096;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  // Reads what is there; true once the server closed.
  bool ended() {
    std::array<char, 65536> buffer{};
    ssize_t count = 0;
    while ((count = recv(fd_, buffer.data(), buffer.size(), 0)) > 0)
      heard.append(buffer.data(), static_cast<std::size_t>(count));
    return count == 0 || (errno != EAGAIN && errno != ENOTCONN);
  }

  std::string heard;

 private:
  int fd_;
};

class MetricsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-metrics-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ASSERT_GE(sd_event_new(&event_), 0);
  }
  void TearDown() override {
    server_.reset();
    sd_event_unref(event_);
    std::filesystem::remove_all(directory_);
  }

  void start(const ListenAddress& address = kAnyPort, MetricsServer::Deadlines deadlines = {}) {
    const auto text = [this] {
      ++answers_;
      return body_;
    };
    auto started = MetricsServer::start(event_, address, text, deadlines);
    ASSERT_TRUE(started) << started.error().message();
    server_ = std::move(*started);
  }
  ListenAddress at(const char* name) const {
    return {ListenAddress::Kind::unix_socket, "", 0, (directory_ / name).string()};
  }
  template <typename Enough>
  [[nodiscard]] bool serve_until(Enough enough) {
    const auto deadline = Clock::now() + berth::test::kPatience;
    while (!enough()) {
      if (Clock::now() > deadline) return false;
      sd_event_run(event_, 5000);
    }
    return true;
  }
  std::string asked(const std::string& request) {
    Client client(AF_INET);
    EXPECT_TRUE(client.connect_to(server_->port()));
    bool said = false;
    EXPECT_TRUE(serve_until([&] {
      if (!said) said = client.say(request) == request.size();
      return client.ended();
    })) << client.heard;
    return client.heard;
  }

  std::filesystem::path directory_;
  sd_event* event_ = nullptr;
  std::string body_ = "berth_ticks_total 1\n";
  int answers_ = 0;
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsServerTest, AnswersOverTcp) {
  start();
  EXPECT_EQ(asked(kGet), http_response(HttpStatus::ok, "text/plain; version=0.0.4; charset=utf-8", body_));
  EXPECT_EQ(answers_, 1);
  EXPECT_TRUE(serve_until([&] { return server_->connections() == 0; }));
}

TEST_F(MetricsServerTest, AnswersInOpenMetricsWhereTheClientPrefersIt) {
  start();
  EXPECT_EQ(
      asked(
          "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n"),
      http_response(HttpStatus::ok, "application/openmetrics-text; version=1.0.0; charset=utf-8",
                    body_ + "# EOF\n"));
}

TEST_F(MetricsServerTest, AnswersOverASocketThatEveryUserMayOpen) {
  const auto address = at("m.sock");
  start(address);
  struct stat file {};
  ASSERT_EQ(lstat(address.path.c_str(), &file), 0);
  EXPECT_TRUE(S_ISSOCK(file.st_mode));
  EXPECT_EQ(file.st_mode & 0777, 0666U);
  Client client(AF_UNIX);
  ASSERT_TRUE(client.connect_to(address.path));
  ASSERT_EQ(client.say(kGet), kGet.size());
  EXPECT_TRUE(serve_until([&] { return client.ended(); }));
  EXPECT_NE(client.heard.find(body_), std::string::npos);
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(address.path));
}

TEST_F(MetricsServerTest, AnswersOverIpv6WhereTheHostHasIt) {
  auto started =
      MetricsServer::start(event_, {ListenAddress::Kind::inet6, "::1", 0, ""}, [] { return std::string(); });
  if (!started) GTEST_SKIP() << started.error().message();
  EXPECT_NE((*started)->port(), 0);
}

TEST_F(MetricsServerTest, RefusesOtherPlacesMethodsAndGarbage) {
  start();
  EXPECT_TRUE(asked("GET / HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(asked("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(asked("\x16\x03\x01\x02").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(asked("hello\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(answers_, 0);
  EXPECT_TRUE(asked(kGet).starts_with("HTTP/1.1 200 "));
}

TEST_F(MetricsServerTest, AnswersHeadWithoutABody) {
  start();
  const std::string whole = asked(kGet);
  const std::string head = asked("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(head, whole.substr(0, whole.find("\r\n\r\n") + 4));
  const std::string refused = asked("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(refused.ends_with("\r\n\r\n")) << refused;
}

TEST_F(MetricsServerTest, TakesTheAbsoluteFormOfAnAddress) {
  start();
  EXPECT_TRUE(asked("GET http://x/metrics HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(asked("GET HTTP://x:1/metrics?a HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(asked("GET http://x HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404 "));
}

TEST_F(MetricsServerTest, SaysOnceThatItCanTakeNobody) {
  start();
  Client client(AF_INET);
  ASSERT_TRUE(client.connect_to(server_->port()));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool said = serve_until([&] { return !server_->problem().empty(); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(said);
  bool asked = false;
  EXPECT_TRUE(serve_until([&] {
    if (!asked) asked = client.say(kGet) == kGet.size();
    return client.ended();
  })) << "it waited in the kernel";
  EXPECT_TRUE(client.heard.starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(server_->problem(), "");
}

TEST_F(MetricsServerTest, AnOversizedRequestIsRefusedWithoutBeingKept) {
  start();
  const std::string answer = asked("GET /metrics HTTP/1.1\r\nX: " + std::string(3 * kMaxRequestBytes, 'a'));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
}

TEST_F(MetricsServerTest, WhoNeverStopsTalkingIsCutOff) {
  start(kAnyPort, {kHourUsec, kHourUsec});
  Client client(AF_INET);
  ASSERT_TRUE(client.connect_to(server_->port()));
  const std::string chunk(65536, 'a');
  client.say(kGet);
  EXPECT_TRUE(serve_until([&] {
    client.say(chunk);
    return server_->connections() == 0 && answers_ == 1;
  })) << "before the deadline of a connection";
}

TEST_F(MetricsServerTest, ARequestInPiecesIsOneRequest) {
  start();
  Client client(AF_INET);
  ASSERT_TRUE(client.connect_to(server_->port()));
  std::size_t said = 0;
  EXPECT_TRUE(serve_until([&] {
    if (said < kGet.size()) said += client.say(kGet.substr(said, 1));
    return client.ended();
  }));
  EXPECT_NE(client.heard.find(body_), std::string::npos);
  EXPECT_EQ(answers_, 1);
}

TEST_F(MetricsServerTest, ALargeAnswerArrivesWhole) {
  body_ = std::string(8 << 20, 'b');
  start();
  const std::string answer = asked(kGet);
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, body_.size());
}

TEST_F(MetricsServerTest, WhoOnlyConnectsGivesWayToWhoAsks) {
  start(kAnyPort, {kHourUsec, kHourUsec});
  std::list<Client> silent;
  for (std::size_t i = 0; i < 2 * MetricsServer::kMaxConnections; ++i) {
    silent.emplace_back(AF_INET);
    ASSERT_TRUE(silent.back().connect_to(server_->port()));
  }
  Client late(AF_INET);
  ASSERT_TRUE(late.connect_to(server_->port()));
  bool asked = false;
  std::size_t most = 0;
  EXPECT_TRUE(serve_until([&] {
    if (!asked) asked = late.say(kGet) == kGet.size();
    most = std::max(most, server_->connections());
    return late.ended();
  })) << "before any deadline";
  EXPECT_TRUE(late.heard.starts_with("HTTP/1.1 200 "));
  EXPECT_LE(most, MetricsServer::kMaxConnections);
}

TEST_F(MetricsServerTest, ARequestThatDripsIsCutOffAtItsDeadline) {
  // The deadline of an answer is another one.
  start(kAnyPort, {MetricsServer::Deadlines().request_usec, kHourUsec});
  Client client(AF_INET);
  ASSERT_TRUE(client.connect_to(server_->port()));
  const auto begin = Clock::now();
  int dripped = 0;
  EXPECT_TRUE(serve_until([&] {
    // A byte every 100 ms: never silent for long, and never done.
    if (Clock::now() - begin > std::chrono::milliseconds(100) * dripped) {
      dripped += static_cast<int>(client.say("G"));
    }
    return client.ended();
  }));
  const std::chrono::duration<double> taken = Clock::now() - begin;
  EXPECT_GT(taken.count(), 1.5);
}

TEST_F(MetricsServerTest, WhoDoesNotReadTheAnswerIsCutOffAtTheDeadline) {
  body_ = std::string(16 << 20, 'b');
  // The deadline of a request is another one.
  start(kAnyPort, {kHourUsec, MetricsServer::Deadlines().answer_usec});
  const auto begin = Clock::now();
  std::list<Client> slow;
  for (std::size_t i = 0; i < MetricsServer::kMaxConnections; ++i) {
    slow.emplace_back(AF_INET);
    slow.back().take_little();
    ASSERT_TRUE(slow.back().connect_to(server_->port()));
    bool asked = false;
    ASSERT_TRUE(serve_until([&] {
      if (!asked) asked = slow.back().say(kGet) == kGet.size();
      return answers_ == static_cast<int>(i) + 1;
    }));
  }
  Client late(AF_INET);
  ASSERT_TRUE(late.connect_to(server_->port()));
  bool asked = false;
  std::size_t most = 0;
  EXPECT_TRUE(serve_until([&] {
    if (!asked) asked = late.say(kGet) == kGet.size();
    most = std::max(most, server_->connections());
    return late.ended();
  })) << "the ninth is served once the others are cut off";
  EXPECT_EQ(most, MetricsServer::kMaxConnections);
  const std::chrono::duration<double> taken = Clock::now() - begin;
  EXPECT_GT(taken.count(), 3);
  EXPECT_TRUE(late.heard.starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(serve_until([&] { return server_->connections() == 0; }));
}

TEST_F(MetricsServerTest, AClientThatLeavesIsForgotten) {
  start(kAnyPort, {kHourUsec, kHourUsec});
  {
    Client client(AF_INET);
    ASSERT_TRUE(client.connect_to(server_->port()));
    ASSERT_TRUE(serve_until([&] { return server_->connections() == 1; }));
  }
  EXPECT_TRUE(serve_until([&] { return server_->connections() == 0; }));
}

TEST_F(MetricsServerTest, ASocketLeftBehindIsReplacedAndNothingElse) {
  const auto address = at("m.sock");
  const int left = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, address.path.c_str(), address.path.size() + 1);
  ASSERT_EQ(bind(left, reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
  close(left);
  start(address);
  // Another process listens there now.
  const auto second = config::ListeningSocket::open(address);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("cannot listen on " + address.path), std::string::npos);
  server_.reset();

  std::ofstream(address.path) << "precious";
  const auto refused = config::ListeningSocket::open(address);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("this path is a file and not a socket"), std::string::npos)
      << refused.error().message();
  EXPECT_TRUE(std::filesystem::exists(address.path));
}

TEST_F(MetricsServerTest, AFileThatSomebodyElsePutThereStays) {
  const auto address = at("m.sock");
  start(address);
  std::filesystem::remove(address.path);
  std::ofstream(address.path) << "precious";
  server_.reset();
  EXPECT_TRUE(std::filesystem::exists(address.path));
}

TEST_F(MetricsServerTest, TheEndpointFollowsItsSettingsAndTriesAgain) {
  MetricsEndpoint endpoint([this] { return body_; });
  const auto first = at("a.sock");
  endpoint.keep(first, 1000);
  EXPECT_FALSE(std::filesystem::exists(first.path)) << "not attached yet";
  endpoint.attach(event_);
  endpoint.keep({}, 1000);
  EXPECT_EQ(endpoint.capability(), std::nullopt);
  endpoint.keep(first, 1000);
  EXPECT_TRUE(std::filesystem::exists(first.path));
  EXPECT_TRUE(endpoint.capability()->available);

  auto elsewhere = at("missing");
  elsewhere.path += "/b.sock";
  endpoint.keep(elsewhere, 1001);
  EXPECT_FALSE(std::filesystem::exists(first.path)) << "nobody listens at the old place";
  EXPECT_FALSE(endpoint.capability()->available);
  EXPECT_NE(endpoint.capability()->detail.find("No such file"), std::string::npos)
      << endpoint.capability()->detail;
  std::filesystem::create_directory(directory_ / "missing");
  endpoint.keep(elsewhere, 1005);
  EXPECT_FALSE(endpoint.capability()->available) << "not before its time";
  endpoint.keep(elsewhere, 1011);
  EXPECT_TRUE(endpoint.capability()->available);
  endpoint.keep({}, 1012);
  EXPECT_FALSE(std::filesystem::exists(elsewhere.path));
  endpoint.keep(first, 1013);
  endpoint.detach();
  EXPECT_FALSE(std::filesystem::exists(first.path));
}

}  // namespace
}  // namespace berth::daemon
