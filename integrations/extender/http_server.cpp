// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/http_server.h"

#include "integrations/extender/documents.h"
#include "os/clock.h"
#include "os/file_descriptor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace berth::extender {

namespace {

// Deadlines are looked at this often.
constexpr int kTurn_ms = 1000;
// Between two looks at the clients, short requests are answered for so long.
constexpr double kAnswering_s = 0.05;
// New connections of one listening socket between two looks at the clients.
constexpr int kMostAccepted = 16;
// A client that has asked for nothing for so long loses nothing with its connection.
constexpr double kIdle_s = 1;
// Without a descriptor for a new connection, and without one to close.
constexpr double kNoDescriptors_s = 1;
constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Failures of accept(2) that a closed connection mends.
bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// "127.0.0.1:40000", or the process at the other end of a local socket.
std::string client_of(const sockaddr_storage& address, int fd) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(four.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(six.sin6_port));
  }
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return "a local client";
  return fmt::format("process {} of user {}", peer.pid, peer.uid);
}

}  // namespace

struct HttpServer::Connection {
  os::FileDescriptor fd;
  std::size_t socket = 0;
  sockaddr_storage address{};
  std::string received;
  std::optional<RequestHead> head;  // of the request that is being received
  bool whole = false;               // that request was received, and waits for its answer
  std::string answer;
  std::size_t sent = 0;
  bool closes = false;  // after the answer
  bool ended = false;   // to be erased
  double since_s = 0;   // the beginning of its present state: idle, receive, wait, or send

  bool idle() const { return received.empty() && answer.empty(); }
  std::size_t asked_bytes() const { return head ? head->head_bytes + head->body_bytes : 0; }
  std::size_t held_bytes() const { return received.size() + answer.size(); }
  bool is_long(std::size_t short_bytes) const {
    return asked_bytes() > short_bytes || held_bytes() > short_bytes;
  }
  void end() {
    ended = true;
    whole = false;
    head.reset();
    received = std::string();
    answer = std::string();
    fd = os::FileDescriptor();
  }
};

HttpServer::HttpServer(std::vector<config::ListeningSocket> sockets, Handler handler, FailureLog::Say say,
                       Limits limits)
    : sockets_(std::move(sockets)),
      handler_(std::move(handler)),
      limits_(limits),
      failures_(std::move(say)) {}

HttpServer::~HttpServer() = default;

void HttpServer::fail(Connection& connection, Failure failure, const std::string& why, double now_s) {
  failures_.add(failure, client_of(connection.address, connection.fd.get()), why, now_s);
  connection.end();
}

bool HttpServer::close_one(const std::size_t* socket, Failure failure, double now_s) {
  Connection* victim = nullptr;
  const auto order = [now_s](const Connection& connection) {
    return std::pair(!connection.idle() || now_s - connection.since_s < kIdle_s, connection.since_s);
  };
  for (const auto& connection : connections_) {
    if (connection->ended || (socket != nullptr && connection->socket != *socket)) continue;
    if (victim == nullptr || order(*connection) < order(*victim)) victim = connection.get();
  }
  if (victim == nullptr) return false;
  if (victim->idle())
    victim->end();
  else
    fail(*victim, failure, "", now_s);
  return true;
}

void HttpServer::accept_all(std::size_t socket, double now_s) {
  bool is_short = false;
  // accept(2) lacks a descriptor even if no client waits, so then poll(2) has to say whether one does.
  for (int i = 0; i < kMostAccepted && !is_short; ++i) {
    auto connection = std::make_unique<Connection>();
    const auto accepted = [&] {
      socklen_t length = sizeof connection->address;
      return accept4(sockets_[socket].fd(), reinterpret_cast<sockaddr*>(&connection->address), &length,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);
    };
    int fd = accepted();
    is_short = fd < 0 && is_shortage(errno);
    if (is_short) {
      failures_.add(Failure::descriptors, "a new client", model::Error::from_errno(errno, "accept").message(),
                    now_s);
      // Only the first one of a round waits for certain.
      if (i == 0 && close_one(nullptr, Failure::connections, now_s)) fd = accepted();
      if (fd < 0 && is_shortage(errno)) accepts_from_s_ = now_s + kNoDescriptors_s;
    }
    if (fd < 0) return;
    connection->fd = os::FileDescriptor(fd);
    const int yes = 1;
    // Fails for a local socket, which sends at once anyway.
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const auto open = std::count_if(connections_.begin(), connections_.end(), [socket](const auto& other) {
      return !other->ended && other->socket == socket;
    });
    if (static_cast<std::size_t>(open) >= limits_.connections)
      close_one(&socket, Failure::connections, now_s);
    connection->socket = socket;
    connection->since_s = now_s;
    connections_.push_back(std::move(connection));
  }
}

void HttpServer::send_rest(Connection& connection, double now_s) {
  while (connection.sent < connection.answer.size()) {
    const ssize_t count = send(connection.fd.get(), connection.answer.data() + connection.sent,
                               connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0) {
      if (!would_block(errno)) fail(connection, Failure::hung_up, "before the end of its answer", now_s);
      return;
    }
    connection.sent += static_cast<std::size_t>(count);
  }
  if (connection.closes) return connection.end();
  connection.answer = std::string();
  connection.sent = 0;
  connection.since_s = now_s;
  // A next request may have come with the last one.
  look_at(connection, now_s);
}

void HttpServer::refuse(Connection& connection, int status, Failure failure, const std::string& why,
                        double now_s) {
  failures_.add(failure, client_of(connection.address, connection.fd.get()), why, now_s);
  connection.closes = true;
  connection.received = std::string();
  connection.head.reset();
  connection.answer = to_text({.status = status, .body = error_json(why)}, false);
  send_rest(connection, now_s);
}

void HttpServer::look_at(Connection& connection, double now_s) {
  if (connection.received.empty()) return;
  if (!connection.head) {
    if (is_tls(connection.received))
      return refuse(connection, 400, Failure::tls, "berthctl serve speaks no TLS", now_s);
    auto parsed = parse_head(connection.received);
    if (!parsed) return refuse(connection, 400, Failure::malformed, parsed.error().message(), now_s);
    if (!*parsed) return;
    connection.head = std::move(*parsed);
    if (connection.head->body_bytes > limits_.body_bytes)
      return refuse(connection, 413, Failure::too_long, "the body is too long", now_s);
    if (connection.head->continues && connection.received.size() < connection.asked_bytes() &&
        send(connection.fd.get(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(kContinue.size()))
      return fail(connection, Failure::hung_up, "in its request", now_s);
  }
  if (connection.received.size() < connection.asked_bytes()) return;
  connection.whole = true;
  connection.since_s = now_s;
}

void HttpServer::keep_limits(const Connection& newest, double now_s) {
  const bool is_long = newest.is_long(limits_.short_bytes);
  const std::size_t limit = is_long ? limits_.all_long_bytes : limits_.all_short_bytes;
  for (;;) {
    std::size_t bytes = 0;
    Connection* oldest = nullptr;
    // A request that was received whole stays before others: it waits for no client.
    const auto order = [](const Connection& connection) {
      return std::pair(connection.whole, connection.since_s);
    };
    for (const auto& connection : connections_) {
      if (connection->ended || connection->socket != newest.socket || connection->held_bytes() == 0 ||
          connection->is_long(limits_.short_bytes) != is_long)
        continue;
      bytes += connection->held_bytes();
      if (oldest == nullptr || order(*connection) < order(*oldest)) oldest = connection.get();
    }
    if (bytes <= limit || oldest == nullptr) return;
    fail(*oldest, Failure::too_much, "", now_s);
  }
}

void HttpServer::answer(Connection& connection) {
  const std::size_t bytes = connection.asked_bytes();
  const RequestHead head = *std::exchange(connection.head, std::nullopt);
  const Reply reply =
      handler_(connection.socket, head,
               std::string_view(connection.received).substr(head.head_bytes, head.body_bytes));
  const double now_s = os::boot_s();
  if (reply.failure)
    failures_.add(*reply.failure, client_of(connection.address, connection.fd.get()), reply.why, now_s);
  const bool keep = head.keep && !reply.closes;
  connection.answer = to_text(reply, keep);
  connection.closes = !keep;
  connection.whole = false;
  // A long request's memory is given back.
  connection.received = connection.received.substr(bytes);
  connection.since_s = now_s;
  send_rest(connection, now_s);
  if (!connection.ended) keep_limits(connection, now_s);
}

void HttpServer::answer_whole_requests() {
  const auto is_older = [](const auto* a, const auto* b) { return a->since_s < b->since_s; };
  std::vector<Connection*> questions;
  std::vector<Connection*> snapshots;
  for (const auto& connection : connections_) {
    if (!connection->whole) continue;
    (connection->head->path == kSnapshotsPath ? snapshots : questions).push_back(connection.get());
  }
  // The oldest first, so that each one's turn comes. Then the shortest: a question of the scheduler waits for
  // one long one at most.
  if (!questions.empty()) {
    std::iter_swap(questions.begin(), std::min_element(questions.begin(), questions.end(), is_older));
    std::stable_sort(questions.begin() + 1, questions.end(),
                     [](const auto* a, const auto* b) { return a->asked_bytes() < b->asked_bytes(); });
  }
  const double until_s = os::boot_s() + kAnswering_s;
  for (Connection* connection : questions) {
    // An answer before this one may have ended it.
    if (connection->whole) answer(*connection);
    if (os::boot_s() >= until_s) break;
  }
  // One a round: however many there are, a question waits for one of them.
  const auto oldest = std::min_element(snapshots.begin(), snapshots.end(), is_older);
  if (oldest != snapshots.end() && (*oldest)->whole) answer(**oldest);
}

void HttpServer::receive(Connection& connection, double now_s) {
  std::array<char, kChunkBytes> chunk;
  const ssize_t count = recv(connection.fd.get(), chunk.data(), chunk.size(), 0);
  if (count < 0 && would_block(errno)) return;
  if (count <= 0) {
    if (connection.idle()) return connection.end();
    return fail(connection, Failure::hung_up, "in its request", now_s);
  }
  std::string& received = connection.received;
  if (received.empty()) connection.since_s = now_s;
  const std::size_t size = received.size() + static_cast<std::size_t>(count);
  // Memory follows the bytes that came, not the announced length.
  if (size > received.capacity())
    received.reserve(std::max(size, std::min(2 * size, connection.asked_bytes())));
  received.append(chunk.data(), static_cast<std::size_t>(count));
  look_at(connection, now_s);
  if (!connection.ended) keep_limits(connection, now_s);
}

void HttpServer::serve(Connection& connection, bool has_news, double now_s) {
  if (has_news) {
    if (connection.whole)
      fail(connection, Failure::hung_up, "before its answer", now_s);
    else if (connection.answer.empty())
      receive(connection, now_s);
    else
      send_rest(connection, now_s);
  }
  if (connection.ended) return;
  const double since_s = now_s - connection.since_s;
  if (connection.idle()) {
    if (since_s > limits_.idle_s) connection.end();
  } else if (connection.whole) {
    if (since_s > limits_.answer_s)
      fail(connection, Failure::too_slow, "its request waited for too long, because others ask too much",
           now_s);
  } else if (since_s > (connection.answer.empty() ? limits_.request_s : limits_.answer_s)) {
    fail(connection, Failure::too_slow,
         connection.answer.empty() ? "its request did not end" : "it does not read its answer", now_s);
  }
}

void HttpServer::erase_ended() {
  std::erase_if(connections_, [](const auto& connection) { return connection->ended; });
}

bool HttpServer::waits() const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection->whole; });
}

model::Result<void> HttpServer::run(int stop) {
  std::vector<pollfd> items;
  for (;;) {
    const bool accepts = os::boot_s() >= accepts_from_s_;
    items.assign(1, {.fd = stop, .events = POLLIN, .revents = 0});
    for (const auto& socket : sockets_)
      items.push_back({.fd = accepts ? socket.fd() : -1, .events = POLLIN, .revents = 0});
    for (const auto& connection : connections_) {
      // A client whose request waits has nothing to say, unless it gives up.
      const int events = connection->whole ? POLLRDHUP : connection->answer.empty() ? POLLIN : POLLOUT;
      items.push_back({.fd = connection->fd.get(), .events = static_cast<short>(events), .revents = 0});
    }
    if (poll(items.data(), items.size(), waits() ? 0 : kTurn_ms) < 0 && errno != EINTR)
      return model::fail(model::Error::from_errno(errno, "poll"));
    if (items[0].revents != 0) return {};
    const double now_s = os::boot_s();
    const std::size_t first = 1 + sockets_.size();
    for (std::size_t i = 0; i < connections_.size(); ++i)
      if (!connections_[i]->ended) serve(*connections_[i], items[first + i].revents != 0, now_s);
    answer_whole_requests();
    erase_ended();
    for (std::size_t i = 0; i < sockets_.size(); ++i)
      if (items[1 + i].revents != 0) accept_all(i, now_s);
    erase_ended();
    failures_.say_waiting(now_s);
  }
}

}  // namespace berth::extender
