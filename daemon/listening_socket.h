// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/listen_address.h"
#include "model/error.h"

#include <cstdint>
#include <string>

#include <sys/types.h>

namespace berth::daemon {

// A non-blocking stream socket that listens, and its file, while this lives.
class ListeningSocket {
 public:
  // A file at a socket's path is replaced where it is a socket that nobody listens on, and the new one is
  // open to every user. Error names the address and says why nothing can listen there.
  static model::Result<ListeningSocket> open(const config::ListenAddress& address);
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  int fd() const { return fd_; }
  std::uint16_t port() const { return port_; }  // 0 for a socket's file

 private:
  explicit ListeningSocket(int fd) : fd_(fd) {}

  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::string path_;  // to be removed, if it is still this file
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace berth::daemon
