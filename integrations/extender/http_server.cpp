// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/http_server.h"

#include "os/clock.h"
#include "os/file_descriptor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace berth::extender {

namespace {

// Deadlines are looked at this often.
constexpr int kTurn_ms = 1000;
constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Reply refusal(int status, const std::string& why) {
  return {.status = status, .body = R"({"Error":")" + why + "\"}"};
}

}  // namespace

struct HttpServer::Connection {
  os::FileDescriptor fd;
  std::size_t socket = 0;
  std::string received;
  std::string answer;
  std::size_t sent = 0;
  bool closes = false;     // after the answer
  bool continued = false;  // "100 Continue" was sent for the present request
  bool ended = false;      // to be erased after the pass over all connections
  double since_s = 0;      // the beginning of what it does now: of being idle, of a request, of an answer

  bool idle() const { return received.empty() && answer.empty(); }
  std::size_t bytes() const { return received.capacity() + answer.capacity(); }
};

HttpServer::HttpServer(std::vector<config::ListeningSocket> sockets, Handler handler, Limits limits)
    : sockets_(std::move(sockets)), handler_(std::move(handler)), limits_(limits) {}

HttpServer::~HttpServer() = default;

std::size_t HttpServer::bytes_of_others(const Connection& connection) const {
  std::size_t bytes = 0;
  for (const auto& other : connections_)
    if (other.get() != &connection) bytes += other->bytes();
  return bytes;
}

void HttpServer::make_room() {
  if (connections_.size() < limits_.connections) return;
  const auto oldest =
      std::min_element(connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
        return std::pair(!a->idle(), a->since_s) < std::pair(!b->idle(), b->since_s);
      });
  connections_.erase(oldest);
}

void HttpServer::accept_from(std::size_t socket, double now_s) {
  os::FileDescriptor fd(accept4(sockets_[socket].fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.get() < 0) return;
  const int yes = 1;
  // Fails for a local socket, which sends at once anyway.
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  make_room();
  auto connection = std::make_unique<Connection>();
  connection->fd = std::move(fd);
  connection->socket = socket;
  connection->since_s = now_s;
  connections_.push_back(std::move(connection));
}

bool HttpServer::send_rest(Connection& connection, double now_s) {
  while (connection.sent < connection.answer.size()) {
    const ssize_t count = send(connection.fd.get(), connection.answer.data() + connection.sent,
                               connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0) return would_block(errno);
    connection.sent += static_cast<std::size_t>(count);
  }
  if (connection.closes) return false;
  connection.answer = std::string();
  connection.sent = 0;
  connection.since_s = now_s;
  return true;
}

bool HttpServer::answer_whole_requests(Connection& connection, double now_s) {
  while (connection.answer.empty()) {
    const auto parsed = parse_head(connection.received);
    const auto refuse = [&](int status, const std::string& why) {
      connection.closes = true;
      connection.received = std::string();
      connection.answer = to_text(refusal(status, why), false);
      return send_rest(connection, now_s);
    };
    if (!parsed) return refuse(400, parsed.error().message());
    if (!*parsed) return true;
    const RequestHead& head = **parsed;
    if (head.body_bytes > limits_.body_bytes) return refuse(413, "the body is too long");
    if (bytes_of_others(connection) + head.head_bytes + head.body_bytes > limits_.all_bytes)
      return refuse(503, "too much is asked at once");
    if (connection.received.size() < head.head_bytes + head.body_bytes) {
      // Counts from now on, before the bytes come.
      connection.received.reserve(head.head_bytes + head.body_bytes);
      if (head.continues && !std::exchange(connection.continued, true))
        return send(connection.fd.get(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(kContinue.size());
      return true;
    }
    const Reply reply =
        handler_(connection.socket, head,
                 std::string_view(connection.received).substr(head.head_bytes, head.body_bytes));
    connection.answer = to_text(reply, head.keep);
    connection.closes = !head.keep;
    connection.continued = false;
    // A long request's memory is given back.
    connection.received = connection.received.substr(head.head_bytes + head.body_bytes);
    connection.since_s = now_s;
    if (!send_rest(connection, now_s)) return false;
    if (connection.received.empty()) return true;
  }
  return true;
}

bool HttpServer::receive(Connection& connection, double now_s) {
  std::array<char, kChunkBytes> chunk;
  const ssize_t count = recv(connection.fd.get(), chunk.data(), chunk.size(), 0);
  if (count < 0) return would_block(errno);
  if (count == 0) return false;
  if (connection.received.empty()) connection.since_s = now_s;
  connection.received.append(chunk.data(), static_cast<std::size_t>(count));
  return answer_whole_requests(connection, now_s);
}

bool HttpServer::serve(Connection& connection, double now_s) {
  if (connection.answer.empty()) return receive(connection, now_s);
  return send_rest(connection, now_s) && answer_whole_requests(connection, now_s);
}

model::Result<void> HttpServer::run(int stop) {
  std::vector<pollfd> items;
  for (;;) {
    items.assign(1, {.fd = stop, .events = POLLIN, .revents = 0});
    for (const auto& socket : sockets_) items.push_back({.fd = socket.fd(), .events = POLLIN, .revents = 0});
    for (const auto& connection : connections_) {
      const short events = connection->answer.empty() ? POLLIN : POLLOUT;
      items.push_back({.fd = connection->fd.get(), .events = events, .revents = 0});
    }
    if (poll(items.data(), items.size(), kTurn_ms) < 0 && errno != EINTR)
      return model::fail(model::Error::from_errno(errno, "poll"));
    if (items[0].revents != 0) return {};
    const double now_s = os::boot_s();
    const std::size_t first = 1 + sockets_.size();
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      auto& connection = connections_[i];
      const double limit_s = connection->idle()           ? limits_.idle_s
                             : connection->answer.empty() ? limits_.request_s
                                                          : limits_.answer_s;
      const bool late = now_s - connection->since_s > limit_s;
      connection->ended = late || (items[first + i].revents != 0 && !serve(*connection, now_s));
    }
    std::erase_if(connections_, [](const auto& connection) { return connection->ended; });
    for (std::size_t i = 0; i < sockets_.size(); ++i)
      if (items[1 + i].revents != 0) accept_from(i, now_s);
  }
}

}  // namespace berth::extender
