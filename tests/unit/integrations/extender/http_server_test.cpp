// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/http_server.h"

#include "config/listen_address.h"
#include "os/file_descriptor.h"
#include "tests/patience.h"
#include "tests/temporary_directory.h"

#include <array>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace berth::extender {
namespace {

using os::FileDescriptor;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string request(std::size_t length, const std::string& more = "") {
  return "POST /x HTTP/1.1\r\nContent-Length: " + std::to_string(length) + "\r\n" + more + "\r\n" +
         std::string(length, 'b');
}

class ExtenderHttpServer : public testing::Test {
 protected:
  ~ExtenderHttpServer() override { stop(); }

  void start(HttpServer::Limits limits = {}) {
    // Port 0 is any free one.
    const config::ListenAddress address{
        .kind = config::ListenAddress::Kind::inet, .host = "127.0.0.1", .port = 0, .path = {}};
    const auto local = config::parse_listen_address((directory_.path() / "socket").string());
    ASSERT_TRUE(local);
    std::vector<config::ListeningSocket> sockets;
    for (const auto& where : {address, *local}) {
      auto socket = config::ListeningSocket::open(where);
      ASSERT_TRUE(socket) << socket.error().message();
      sockets.push_back(std::move(*socket));
    }
    const auto handler = [this](std::size_t socket, const RequestHead& head, std::string_view body) -> Reply {
      if (head.path == "/wait") {
        asked_.count_down();
        gate_.wait();
      }
      asked_bytes_.push_back(body.size());
      if (head.path == "/refused")
        return {.status = 400, .body = "{}", .failure = Failure::snapshot, .why = "as the test wants"};
      if (head.path == "/last") return {.status = 400, .body = "{}", .closes = true};
      if (head.path == "/long") return {.status = 200, .body = std::string(std::size_t{16} << 20, 'x')};
      return {.status = 200, .body = std::to_string(socket) + ":" + std::to_string(body.size())};
    };
    const auto say = [this](const std::string& line) {
      const std::scoped_lock lock(lines_mutex_);
      lines_.push_back(line);
    };
    server_ = std::make_unique<HttpServer>(std::move(sockets), handler, say, limits);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run(stop_.get())); });
  }

  FileDescriptor connected() const {
    FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connect_to_server(fd);
    return fd;
  }
  void connect_to_server(const FileDescriptor& fd) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port(0));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    be_patient(fd);
  }
  FileDescriptor connected_locally() const {
    FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (directory_.path() / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    be_patient(fd);
    return fd;
  }
  static void be_patient(const FileDescriptor& fd) {
    const timeval patience{.tv_sec = test::kPatience.count(), .tv_usec = 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  static void send_all(const FileDescriptor& fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  // Reads until the text ends so, or the connection does.
  static std::string read_until(const FileDescriptor& fd, std::string_view end) {
    std::string text;
    std::array<char, 4096> chunk{};
    while (end.empty() || !std::string_view(text).ends_with(end)) {
      const ssize_t count = recv(fd.get(), chunk.data(), chunk.size(), 0);
      if (count <= 0) break;
      text.append(chunk.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  // Keeps the server's one thread busy until open() is called.
  FileDescriptor busy() {
    FileDescriptor fd = connected();
    send_all(fd, "POST /wait HTTP/1.1\r\n\r\n");
    asked_.wait();
    return fd;
  }
  void open() { gate_.count_down(); }

  std::vector<std::string> lines() {
    const std::scoped_lock lock(lines_mutex_);
    return lines_;
  }
  // Once the server's thread has ended.
  const std::vector<std::size_t>& bytes_in_order() {
    stop();
    return asked_bytes_;
  }
  void stop() {
    const std::uint64_t one = 1;
    EXPECT_EQ(write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    if (thread_.joinable()) thread_.join();
  }

  std::mutex lines_mutex_;
  std::vector<std::string> lines_;
  std::vector<std::size_t> asked_bytes_;
  test::TemporaryDirectory directory_;
  std::latch asked_{1};
  std::latch gate_{1};
  FileDescriptor stop_{eventfd(0, EFD_CLOEXEC)};
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(ExtenderHttpServer, AnswersOnAKeptConnection) {
  start();
  const FileDescriptor fd = connected();
  for (const std::size_t length : {3U, 0U, 200'000U}) {
    send_all(fd, request(length));
    const std::string end = "\r\n\r\n0:" + std::to_string(length);
    EXPECT_THAT(read_until(fd, end), EndsWith(end));
  }
  send_all(fd, request(1, "Connection: close\r\n"));
  EXPECT_THAT(read_until(fd, ""), EndsWith("0:1"));
}

TEST_F(ExtenderHttpServer, AReplyMayEndAKeptConnection) {
  start();
  const auto fd = connected();
  send_all(fd, "POST /last HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(read_until(fd, ""), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("Connection: close")));
}

TEST_F(ExtenderHttpServer, TellsItsSocketsApart) {
  start();
  const FileDescriptor fd = connected_locally();
  send_all(fd, request(3));
  EXPECT_THAT(read_until(fd, "1:3"), EndsWith("1:3"));
}

TEST_F(ExtenderHttpServer, AnswersRequestsThatComeTogetherOrInDrops) {
  start();
  const FileDescriptor fd = connected();
  send_all(fd, request(3) + request(4) + request(5));
  const std::string all = read_until(fd, "0:5");
  EXPECT_THAT(all, HasSubstr("0:3HTTP/1.1"));
  EXPECT_THAT(all, HasSubstr("0:4HTTP/1.1"));
  for (const char c : request(2)) send_all(fd, std::string_view(&c, 1));
  EXPECT_THAT(read_until(fd, "0:2"), EndsWith("0:2"));
}

TEST_F(ExtenderHttpServer, InvitesALongBody) {
  start();
  const FileDescriptor fd = connected();
  const std::string text = request(100, "Expect: 100-continue\r\n");
  send_all(fd, text.substr(0, text.size() - 100));
  EXPECT_EQ(read_until(fd, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  send_all(fd, text.substr(text.size() - 100));
  EXPECT_THAT(read_until(fd, "0:100"), EndsWith("0:100"));
}

TEST_F(ExtenderHttpServer, SendsALongAnswerToASlowReader) {
  start();
  const FileDescriptor fd = connected();
  send_all(fd, "POST /long HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  // Others are served meanwhile.
  const FileDescriptor other = connected();
  send_all(other, request(3));
  EXPECT_THAT(read_until(other, "0:3"), EndsWith("0:3"));
  EXPECT_GT(read_until(fd, "").size(), std::size_t{16} << 20);
}

TEST_F(ExtenderHttpServer, RefusesWhatIsTooLongOrMalformed) {
  start({.body_bytes = 1000});
  FileDescriptor fd = connected();
  send_all(fd, "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_THAT(read_until(fd, ""), StartsWith("HTTP/1.1 413 "));
  fd = connected();
  send_all(fd, "nonsense\r\n\r\n");
  EXPECT_THAT(read_until(fd, ""), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(lines(),
              ElementsAre(HasSubstr("the body is too long"), HasSubstr("the request line is malformed")));
}

TEST_F(ExtenderHttpServer, BytesThatWereOnlyAnnouncedKeepNobodyOut) {
  start();
  std::vector<FileDescriptor> many;
  for (int i = 0; i < 100; ++i) {
    many.push_back(connected());
    send_all(many.back(), "POST / HTTP/1.1\r\nContent-Length: 16777216\r\n\r\n");
  }
  const FileDescriptor fd = connected();
  for (const std::size_t length : {std::size_t{100}, std::size_t{16} << 20}) {
    send_all(fd, request(length));
    const std::string end = "0:" + std::to_string(length);
    EXPECT_THAT(read_until(fd, end), EndsWith(end));
  }
  EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(ExtenderHttpServer, AnOlderUnfinishedRequestGivesWayToANewerOne) {
  start({.body_bytes = 1000, .short_bytes = 100, .all_long_bytes = 1500});
  const std::string text = request(900);
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connected());
    send_all(clients.back(), std::string_view(text).substr(0, 700));
    // Its bytes are there before the next client's.
    const FileDescriptor other = connected();
    send_all(other, request(1));
    EXPECT_THAT(read_until(other, "0:1"), EndsWith("0:1"));
  }
  EXPECT_EQ(read_until(clients[0], ""), "");
  send_all(clients[2], std::string_view(text).substr(700));
  EXPECT_THAT(read_until(clients[2], "0:900"), EndsWith("0:900"));
  EXPECT_THAT(lines(), Contains(HasSubstr("clients sent too much at once")));
}

TEST_F(ExtenderHttpServer, AnUnfinishedShortRequestGivesWayToANewerOne) {
  start({.all_short_bytes = 1500});
  const FileDescriptor first = connected();
  send_all(first, std::string_view(request(900)).substr(0, 800));
  const FileDescriptor second = connected();
  send_all(second, request(900));
  EXPECT_THAT(read_until(second, "0:900"), EndsWith("0:900"));
  EXPECT_EQ(read_until(first, ""), "");
}

TEST_F(ExtenderHttpServer, ASocketsLimitsAreItsOwn) {
  start({.connections = 2, .all_short_bytes = 1500});
  const FileDescriptor local = connected_locally();
  send_all(local, std::string_view(request(1000)).substr(0, 900));
  std::vector<FileDescriptor> many;
  for (int i = 0; i < 20; ++i) {
    many.push_back(connected());
    send_all(many.back(), std::string_view(request(1000)).substr(0, 900));
  }
  EXPECT_EQ(read_until(many[0], ""), "");
  send_all(local, std::string_view(request(1000)).substr(900));
  EXPECT_THAT(read_until(local, "1:1000"), EndsWith("1:1000"));
}

TEST_F(ExtenderHttpServer, OfWaitingRequestsTheOldestIsAnsweredAndThenTheShortest) {
  start();
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(connected());
  const FileDescriptor first = busy();
  const std::vector<std::size_t> lengths{3000, 2000, 1000, 10};
  for (std::size_t i = 0; i < lengths.size(); ++i) send_all(clients[i], request(lengths[i]));
  open();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::string end = "0:" + std::to_string(lengths[i]);
    EXPECT_THAT(read_until(clients[i], end), EndsWith(end));
  }
  EXPECT_THAT(bytes_in_order(), ElementsAre(0, 3000, 10, 1000, 2000));
}

TEST_F(ExtenderHttpServer, AQuestionWaitsForOneSnapshotHoweverManyThereAre) {
  start();
  std::vector<FileDescriptor> senders;
  for (int i = 0; i < 8; ++i) senders.push_back(connected());
  const FileDescriptor client = connected();
  const FileDescriptor first = busy();
  for (std::size_t i = 0; i < senders.size(); ++i)
    send_all(senders[i], "POST /snapshots HTTP/1.1\r\nContent-Length: 1\r\n\r\nb");
  // It is longer than they are, and came after them.
  send_all(client, request(3000));
  open();
  EXPECT_THAT(read_until(client, "0:3000"), EndsWith("0:3000"));
  for (const FileDescriptor& sender : senders) EXPECT_THAT(read_until(sender, "0:1"), EndsWith("0:1"));
  EXPECT_THAT(bytes_in_order(), ElementsAre(0, 3000, 1, 1, 1, 1, 1, 1, 1, 1));
}

TEST_F(ExtenderHttpServer, WithoutADescriptorTheIdlestClientGivesWay) {
  start();
  const FileDescriptor idle = connected();
  send_all(idle, request(1));
  EXPECT_THAT(read_until(idle, "0:1"), EndsWith("0:1"));
  FileDescriptor late(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = static_cast<rlim_t>(late.get()) + 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<FileDescriptor> filling;
  do filling.emplace_back(dup(STDERR_FILENO));
  while (filling.back());
  connect_to_server(late);
  send_all(late, request(2));
  EXPECT_THAT(read_until(late, "0:2"), EndsWith("0:2"));
  EXPECT_EQ(read_until(idle, ""), "");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("LimitNOFILE=")));
}

TEST_F(ExtenderHttpServer, AClientThatSpeaksTlsIsToldAtOnce) {
  start();
  for (int i = 0; i < 3; ++i) {
    const FileDescriptor fd = connected();
    send_all(fd, std::string_view("\x16\x03\x01\x00\xf4\x01", 6));
    // Go's client calls such an answer "server gave HTTP response to HTTPS client".
    EXPECT_THAT(read_until(fd, ""), StartsWith("HTTP/1.1 400 "));
  }
  EXPECT_THAT(lines(), ElementsAre(AllOf(StartsWith("127.0.0.1:"), HasSubstr("must begin with http://"))));
}

TEST_F(ExtenderHttpServer, BytesThatBeginNoRequestAreRefusedAtOnce) {
  start();
  const FileDescriptor fd = connected();
  send_all(fd, "\x01 and no end of the head");
  EXPECT_THAT(read_until(fd, ""), StartsWith("HTTP/1.1 400 "));
}

TEST_F(ExtenderHttpServer, FailuresAreSaidWithTheirClient) {
  start();
  const FileDescriptor local = connected_locally();
  send_all(local, "POST /refused HTTP/1.1\r\n\r\n");
  EXPECT_THAT(read_until(local, "{}"), EndsWith("{}"));
  EXPECT_THAT(lines(),
              ElementsAre(fmt::format("process {} of user {}: the snapshot is refused: as the test wants",
                                      getpid(), getuid())));
  FileDescriptor gone = connected();
  send_all(gone, "POST ");
  gone = FileDescriptor();
  EXPECT_TRUE(test::eventually([&] { return lines().size() == 2; }));
  EXPECT_THAT(lines().back(),
              AllOf(StartsWith("127.0.0.1:"), EndsWith("the client hung up: in its request")));
}

TEST_F(ExtenderHttpServer, ASilentClientIsCutOff) {
  start({.request_s = 0.1, .idle_s = 0.1});
  const FileDescriptor idle = connected();
  const FileDescriptor begun = connected();
  send_all(begun, "POST / HTTP/1.1\r\n");
  EXPECT_EQ(read_until(idle, ""), "");
  EXPECT_EQ(read_until(begun, ""), "");
}

TEST_F(ExtenderHttpServer, AClientHangsUpAndAnotherAsksInTheSameRound) {
  start();
  FileDescriptor gone = connected();
  const FileDescriptor asks = connected();
  const FileDescriptor first = busy();
  gone = FileDescriptor();
  send_all(asks, request(3));
  open();
  EXPECT_THAT(read_until(asks, "0:3"), EndsWith("0:3"));
  EXPECT_THAT(read_until(first, "0:0"), EndsWith("0:0"));
}

TEST_F(ExtenderHttpServer, AClientIsCutOffAndAnotherAsksInTheSameRound) {
  start({.request_s = 0.05});
  const FileDescriptor slow = connected();
  send_all(slow, "POST");
  const FileDescriptor asks = connected();
  const FileDescriptor first = busy();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  send_all(asks, request(3));
  open();
  EXPECT_THAT(read_until(asks, "0:3"), EndsWith("0:3"));
  EXPECT_EQ(read_until(slow, ""), "");
}

TEST_F(ExtenderHttpServer, AFloodOfShortConnectionsIsAnswered) {
  start();
  const auto ask = [this] {
    for (int i = 0; i < 500; ++i) {
      const FileDescriptor fd = connected();
      send_all(fd, request(1));
      ASSERT_THAT(read_until(fd, "0:1"), EndsWith("0:1"));
    }
  };
  std::vector<std::jthread> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(ask);
}

TEST_F(ExtenderHttpServer, ADrippingClientIsCutOff) {
  start({.request_s = 0.2});
  const FileDescriptor fd = connected();
  EXPECT_TRUE(test::eventually([&] { return send(fd.get(), "x", 1, MSG_NOSIGNAL) < 0; }));
}

TEST_F(ExtenderHttpServer, ANewClientReplacesTheOneThatIsIdleLongest) {
  start({.connections = 2});
  const FileDescriptor first = connected();
  send_all(first, request(1));
  read_until(first, "0:1");
  const FileDescriptor second = connected();
  send_all(second, "POST / HTTP/1.1\r\n");
  const FileDescriptor third = connected();
  send_all(third, request(1));
  EXPECT_THAT(read_until(third, "0:1"), EndsWith("0:1"));
  EXPECT_EQ(read_until(first, ""), "");
}

}  // namespace
}  // namespace berth::extender
