// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/metrics_server.h"

#include "config/listening_socket.h"
#include "daemon/serve/http.h"
#include "model/openmetrics.h"
#include "os/event_source.h"
#include "os/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <exception>
#include <iterator>
#include <list>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace berth::daemon {

namespace {

constexpr std::string_view kPath = "/metrics";
// No scraper connects as often. A process without free descriptors does not spin on a connection that it
// cannot take.
constexpr unsigned kMostAcceptsPerSecond = 50;
// Bytes that a client may send after its request, unread, before it is cut off.
constexpr std::size_t kMostIgnoredBytes = 65536;
constexpr std::uint64_t kSecondUsec = 1'000'000;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

struct MetricsServer::State {
  struct Connection {
    Connection(State& owner, int descriptor) : server(owner), fd(descriptor) {}
    ~Connection() { close(fd); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    State& server;
    int fd;
    std::string request;
    std::string answer;
    std::size_t sent = 0;
    std::size_t ignored = 0;
    // Read, then write, then wait for the client to close. A close at once could reset the connection before
    // the client has read the answer (RFC 9112, 9.6).
    enum class Phase { reading, writing, draining } phase = Phase::reading;
    std::list<Connection>::iterator self;
    os::EventSource deadline;
    os::EventSource io;  // the first to go, before the descriptor
  };

  State(sd_event* loop, config::ListeningSocket listening, std::function<std::string()> make,
        Deadlines limits)
      : event(loop), socket(std::move(listening)), text(std::move(make)), deadlines(limits) {}

  sd_event* event;
  config::ListeningSocket socket;
  std::function<std::string()> text;
  Deadlines deadlines;
  std::list<Connection> connections;
  std::string problem;
  os::EventSource accepting;

  static int on_connection(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& server = *static_cast<State*>(userdata);
    try {
      server.accept_one();
    } catch (const std::exception& error) {
      server.say(error.what());
    }
    return 0;
  }

  static int on_ready(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& connection = *static_cast<Connection*>(userdata);
    try {
      if (connection.server.serve(connection)) return 0;
    } catch (const std::exception& error) {
      os::log_warning("metrics: {}", error.what());
    }
    connection.server.drop(connection);
    return 0;
  }

  static int on_deadline(sd_event_source*, std::uint64_t, void* userdata) {
    auto& connection = *static_cast<Connection*>(userdata);
    connection.server.drop(connection);
    return 0;
  }

  // Logs a problem once for as long as it lasts.
  void say(const std::string& why) {
    if (problem.empty()) os::log_warning("metrics: cannot take connections: {}", why);
    problem = why;
  }

  // The oldest client without a request gives way to a new one, so that silent clients do not block others.
  // False where all connections are being answered.
  bool make_room() {
    if (connections.size() < kMaxConnections) return true;
    const auto oldest = std::find_if(connections.begin(), connections.end(), [](const Connection& item) {
      return item.phase == Connection::Phase::reading;
    });
    if (oldest == connections.end()) return false;
    drop(*oldest);
    return true;
  }

  void accept_one() {
    if (!make_room()) {
      sd_event_source_set_enabled(accepting.get(), SD_EVENT_OFF);
      return;
    }
    const int fd = accept4(socket.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // The client left again, or the system lacks a resource.
      if (!would_block(errno) && errno != ECONNABORTED) say(std::generic_category().message(errno));
      return;
    }
    problem.clear();
    Connection& connection = connections.emplace_back(*this, fd);
    connection.self = std::prev(connections.end());
    int r = os::add_source(connection.io, sd_event_add_io, event, fd, EPOLLIN, on_ready, &connection);
    if (r >= 0) {
      r = os::add_source(connection.deadline, sd_event_add_time_relative, event, CLOCK_MONOTONIC,
                         deadlines.request_usec, std::uint64_t{0}, on_deadline, &connection);
    }
    if (r < 0) drop(connection);
  }

  void drop(Connection& connection) {
    connections.erase(connection.self);
    sd_event_source_set_enabled(accepting.get(), SD_EVENT_ON);
  }

  // Returns false when the connection is done.
  bool serve(Connection& connection) {
    switch (connection.phase) {
      case Connection::Phase::reading:
        return read_request(connection);
      case Connection::Phase::writing:
        return write_answer(connection);
      case Connection::Phase::draining:
        return drain(connection);
    }
    return false;
  }

  bool read_request(Connection& connection) {
    std::array<char, kMaxRequestBytes> buffer{};
    const std::size_t room = kMaxRequestBytes - connection.request.size();
    const ssize_t count = recv(connection.fd, buffer.data(), room, MSG_DONTWAIT);
    if (count < 0) return would_block(errno);
    if (count == 0) return false;
    connection.request.append(buffer.data(), static_cast<std::size_t>(count));
    const auto status = judge_request(connection.request, kPath);
    if (!status) return true;
    connection.answer = answer_to(connection.request, *status);
    connection.phase = Connection::Phase::writing;
    if (sd_event_source_set_time_relative(connection.deadline.get(), deadlines.answer_usec) < 0) return false;
    return write_answer(connection);
  }

  std::string answer_to(std::string_view request, HttpStatus status) const {
    const bool with_body = wants_body(request);
    if (status != HttpStatus::ok) return http_response(status, "", "", with_body);
    if (!prefers_openmetrics(request)) return http_response(status, kMetricsContentType, text(), with_body);
    return http_response(status, kOpenMetricsContentType, model::openmetrics_text(text()), with_body);
  }

  bool write_answer(Connection& connection) {
    while (connection.sent < connection.answer.size()) {
      const ssize_t count = send(connection.fd, connection.answer.data() + connection.sent,
                                 connection.answer.size() - connection.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count < 0 && would_block(errno)) {
        return sd_event_source_set_io_events(connection.io.get(), EPOLLOUT) >= 0;
      }
      if (count < 0) return false;
      connection.sent += static_cast<std::size_t>(count);
    }
    connection.phase = Connection::Phase::draining;
    return shutdown(connection.fd, SHUT_WR) == 0 &&
           sd_event_source_set_io_events(connection.io.get(), EPOLLIN) >= 0;
  }

  static bool drain(Connection& connection) {
    std::array<char, kMaxRequestBytes> buffer{};
    const ssize_t count = recv(connection.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0) return would_block(errno);
    connection.ignored += static_cast<std::size_t>(count);
    return count > 0 && connection.ignored <= kMostIgnoredBytes;
  }
};

MetricsServer::MetricsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
MetricsServer::~MetricsServer() = default;

std::uint16_t MetricsServer::port() const { return state_->socket.port(); }
const std::string& MetricsServer::problem() const { return state_->problem; }
std::size_t MetricsServer::connections() const { return state_->connections.size(); }

model::Result<std::unique_ptr<MetricsServer>> MetricsServer::start(sd_event* event,
                                                                   const config::ListenAddress& address,
                                                                   std::function<std::string()> text,
                                                                   Deadlines deadlines) {
  auto socket = config::ListeningSocket::open(address);
  if (!socket) return model::fail(socket.error());
  auto state = std::make_unique<State>(event, std::move(*socket), std::move(text), deadlines);
  os::EventSource& accepting = state->accepting;
  int r = os::add_source(accepting, sd_event_add_io, event, state->socket.fd(), EPOLLIN, State::on_connection,
                         state.get());
  if (r >= 0) {
    sd_event_source_set_description(accepting.get(), "metrics");
    r = sd_event_source_set_ratelimit(accepting.get(), kSecondUsec, kMostAcceptsPerSecond);
  }
  if (r < 0) return model::fail(model::Error::from_errno(-r, "cannot add metrics to the event loop"));
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(state)));
}

using Kind = config::ListenAddress::Kind;

void MetricsEndpoint::detach() {
  server_.reset();
  event_ = nullptr;
}

void MetricsEndpoint::keep(const config::ListenAddress& wanted, double now) {
  if (event_ == nullptr) return;
  const bool moved = wanted != address_;
  if (moved) {
    server_.reset();
    address_ = wanted;
    problem_.clear();
  }
  if (server_ || wanted.kind == Kind::none) return;
  if (!moved && now >= tried_at_ && now - tried_at_ < kRetry_s) return;
  tried_at_ = now;
  auto started = MetricsServer::start(event_, wanted, text_);
  if (!started) {
    if (problem_ != started.error().message()) os::log_warning("no metrics: {}", started.error().message());
    problem_ = started.error().message();
    return;
  }
  server_ = std::move(*started);
  problem_.clear();
  os::log_info("metrics are served on {}", config::to_string(address_));
}

std::optional<model::Capability> MetricsEndpoint::capability() const {
  if (address_.kind == Kind::none) return std::nullopt;
  if (server_ && !server_->problem().empty()) {
    return model::Capability{"metrics", false, "cannot take connections: " + server_->problem()};
  }
  if (server_) {
    return model::Capability{"metrics", true, fmt::format("served on {}", config::to_string(address_))};
  }
  return model::Capability{"metrics", false, problem_ + "; berth tries again every 10 s"};
}

}  // namespace berth::daemon
