// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/listen_address.h"
#include "model/error.h"

#include <cstdint>
#include <string>

#include <sys/types.h>

namespace berth::config {

// A non-blocking stream socket that listens, and its file, for the lifetime of this object.
class ListeningSocket {
 public:
  // If the path has a socket's file on which no process listens, it is replaced. The new file is open to
  // every user. Error names the address and the reason.
  static model::Result<ListeningSocket> open(const ListenAddress& address);
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

}  // namespace berth::config
