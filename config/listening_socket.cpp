// SPDX-License-Identifier: Apache-2.0
#include "config/listening_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace berth::config {

namespace {

constexpr int kBacklog = 64;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// The address was checked when it was read.
SocketAddress to_kernel(const ListenAddress& address) {
  SocketAddress result;
  if (address.kind == ListenAddress::Kind::unix_socket) {
    auto& local = reinterpret_cast<sockaddr_un&>(result.storage);
    local.sun_family = AF_UNIX;
    std::memcpy(local.sun_path, address.path.c_str(),
                std::min(address.path.size(), sizeof local.sun_path - 1));
    result.length = sizeof local;
  } else if (address.kind == ListenAddress::Kind::inet6) {
    auto& six = reinterpret_cast<sockaddr_in6&>(result.storage);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.host.c_str(), &six.sin6_addr);
    result.length = sizeof six;
  } else {
    auto& four = reinterpret_cast<sockaddr_in&>(result.storage);
    four.sin_family = AF_INET;
    four.sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &four.sin_addr);
    result.length = sizeof four;
  }
  return result;
}

int stream_socket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// Whether a socket's file is left from an earlier run: no process accepts connections there.
bool is_left_behind(const std::string& path, const SocketAddress& address) {
  struct stat file {};
  if (lstat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return false;
  const int fd = stream_socket(AF_UNIX);
  if (fd < 0) return false;
  const bool refused = connect(fd, address.get(), address.length) != 0 && errno == ECONNREFUSED;
  close(fd);
  return refused;
}

// All users may read, over the bus too; the directory may restrict that. The umask sets the mode, since
// chmod(2) on the path afterwards could hit a link that a user put there.
int bind_for_all(int fd, const SocketAddress& where) {
  const mode_t mask = umask(0111);
  const int bound = bind(fd, where.get(), where.length);
  const int error = errno;
  umask(mask);
  errno = error;
  return bound;
}

}  // namespace

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      port_(other.port_),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

ListeningSocket::~ListeningSocket() {
  if (fd_ >= 0) close(fd_);
  struct stat file {};
  if (path_.empty() || lstat(path_.c_str(), &file) != 0) return;
  if (file.st_dev == device_ && file.st_ino == inode_) unlink(path_.c_str());
}

model::Result<ListeningSocket> ListeningSocket::open(const ListenAddress& address) {
  const auto failed = [&] {
    return model::fail(
        model::Error::from_errno(errno, fmt::format("cannot listen on {}", to_string(address))));
  };
  const SocketAddress where = to_kernel(address);
  const bool local = address.kind == ListenAddress::Kind::unix_socket;
  ListeningSocket opened(stream_socket(where.get()->sa_family));
  if (opened.fd_ < 0) return failed();
  const int yes = 1;
  // Connections of an earlier run may still be in TIME_WAIT.
  if (!local && setsockopt(opened.fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) return failed();
  int bound = bind_for_all(opened.fd_, where);
  if (bound != 0 && errno == EADDRINUSE && local) {
    struct stat there {};
    if (lstat(address.path.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode)) {
      return model::fail(
          model::ErrorKind::io,
          fmt::format("cannot listen on {}: this path is a file and not a socket", to_string(address)));
    }
    if (!is_left_behind(address.path, where)) {
      errno = EADDRINUSE;
      return failed();
    }
    if (unlink(address.path.c_str()) != 0) return failed();
    bound = bind_for_all(opened.fd_, where);
  }
  if (bound != 0) return failed();
  if (local) {
    struct stat file {};
    if (lstat(address.path.c_str(), &file) != 0) return failed();
    opened.path_ = address.path;
    opened.device_ = file.st_dev;
    opened.inode_ = file.st_ino;
    if (!S_ISSOCK(file.st_mode)) {
      opened.path_.clear();
      errno = EADDRINUSE;
      return failed();
    }
  } else {
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    if (getsockname(opened.fd_, reinterpret_cast<sockaddr*>(&own), &length) != 0) return failed();
    opened.port_ = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                                   : reinterpret_cast<sockaddr_in&>(own).sin_port);
  }
  if (listen(opened.fd_, kBacklog) != 0) return failed();
  return opened;
}

}  // namespace berth::config
