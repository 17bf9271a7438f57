// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/spark/http_server.h"

#include <array>
#include <stdexcept>
#include <utility>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace berth::spark::test {

Sent answer(const std::string& body, const std::string& status) {
  return {.bytes = "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body};
}

namespace {

bool is_whole(const std::string& request) {
  const std::size_t end = request.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const std::string name = "Content-Length: ";
  const std::size_t length = request.find(name);
  return length > end || request.size() >= end + 4 + std::stoul(request.substr(length + name.size()));
}

}  // namespace

std::string HttpServer::last_request() const {
  const std::scoped_lock lock(mutex_);
  return last_request_;
}

HttpServer::HttpServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || bind(listener_, generic, size) != 0 || listen(listener_, 8) != 0 ||
      getsockname(listener_, generic, &size) != 0)
    throw std::runtime_error("cannot listen on the loopback");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

HttpServer::~HttpServer() {
  stop_ = true;
  thread_.join();
  close(listener_);
}

bool HttpServer::wait(int fd, short events) const {
  while (!stop_) {
    pollfd item{.fd = fd, .events = events, .revents = 0};
    if (poll(&item, 1, 20) > 0) return true;
  }
  return false;
}

void HttpServer::serve() {
  while (wait(listener_, POLLIN)) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    talk(fd);
    close(fd);
  }
}

void HttpServer::talk(int fd) {
  std::string request;
  std::array<char, 4096> chunk{};
  while (!is_whole(request)) {
    if (!wait(fd, POLLIN)) return;
    const ssize_t count = recv(fd, chunk.data(), chunk.size(), 0);
    if (count <= 0) return;
    request.append(chunk.data(), static_cast<std::size_t>(count));
  }
  {
    const std::scoped_lock lock(mutex_);
    last_request_ = request;
  }
  const std::size_t begin = request.find(' ') + 1;
  const Sent sent = handler_(request.substr(begin, request.find(' ', begin) - begin));
  do {
    std::size_t done = 0;
    while (done < sent.bytes.size()) {
      if (!wait(fd, POLLOUT)) return;
      const ssize_t count = send(fd, sent.bytes.data() + done, sent.bytes.size() - done, MSG_NOSIGNAL);
      if (count <= 0) return;
      done += static_cast<std::size_t>(count);
    }
  } while (sent.endless && !stop_);
  if (sent.hang) {
    // Until the client goes.
    if (wait(fd, POLLIN)) recv(fd, chunk.data(), chunk.size(), 0);
  }
}

}  // namespace berth::spark::test
