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
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace berth::extender {
namespace {

using os::FileDescriptor;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string request(std::size_t length, const std::string& more = "") {
  return "POST /x HTTP/1.1\r\nContent-Length: " + std::to_string(length) + "\r\n" + more + "\r\n" +
         std::string(length, 'b');
}

class ExtenderHttpServer : public testing::Test {
 protected:
  ~ExtenderHttpServer() override {
    const std::uint64_t one = 1;
    EXPECT_EQ(write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    if (thread_.joinable()) thread_.join();
  }

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
      if (head.path == "/long") return {.status = 200, .body = std::string(std::size_t{16} << 20, 'x')};
      return {.status = 200, .body = std::to_string(socket) + ":" + std::to_string(body.size())};
    };
    server_ = std::make_unique<HttpServer>(std::move(sockets), handler, limits);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run(stop_.get())); });
  }

  FileDescriptor connected() const {
    FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port(0));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    be_patient(fd);
    return fd;
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
  start({.body_bytes = 1000, .all_bytes = 5000});
  FileDescriptor fd = connected();
  send_all(fd, "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_THAT(read_until(fd, ""), StartsWith("HTTP/1.1 413 "));
  fd = connected();
  send_all(fd, "nonsense\r\n\r\n");
  EXPECT_THAT(read_until(fd, ""), StartsWith("HTTP/1.1 400 "));
  // Six clients that each announce 900 bytes are more than all may have.
  std::vector<FileDescriptor> many;
  for (int i = 0; i < 6; ++i) {
    many.push_back(connected());
    send_all(many.back(), "POST / HTTP/1.1\r\nContent-Length: 900\r\nExpect: 100-continue\r\n\r\n");
    const std::string said = read_until(many.back(), "\r\n\r\n");
    EXPECT_THAT(said, StartsWith(i < 5 ? "HTTP/1.1 100 " : "HTTP/1.1 503 ")) << i;
  }
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
