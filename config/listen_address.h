// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::config {

// Where to listen on this host; nobody elsewhere can connect there.
struct ListenAddress {
  enum class Kind { none, inet, inet6, unix_socket };
  Kind kind = Kind::none;
  std::string host;  // without brackets; of inet and inet6
  std::uint16_t port = 0;
  std::string path;  // of unix_socket

  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// "" (none), "127.0.0.1:9100" (or another address of 127.0.0.0/8), "[::1]:9100", or the absolute path of a
// socket. Error invalid_input says what is wrong, other than loopback addresses included.
model::Result<ListenAddress> parse_listen_address(std::string_view text);

// As parse_listen_address reads it.
std::string to_string(const ListenAddress& address);

}  // namespace berth::config
