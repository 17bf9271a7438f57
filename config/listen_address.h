// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::config {

// A place to listen at on this host; programs on other hosts cannot connect there.
struct ListenAddress {
  enum class Kind { none, inet, inet6, unix_socket };
  Kind kind = Kind::none;
  std::string host;  // without brackets; of inet and inet6
  std::uint16_t port = 0;
  std::string path;  // of unix_socket

  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// Parses "" (none), "127.0.0.1:9100" (or another address of 127.0.0.0/8), "[::1]:9100", or the absolute path
// of a socket. Error refused for an address other than loopback; invalid_input names any other fault.
model::Result<ListenAddress> parse_listen_address(std::string_view text);

// As parse_listen_address reads it.
std::string to_string(const ListenAddress& address);

}  // namespace berth::config
