// SPDX-License-Identifier: Apache-2.0
#include "config/listen_address.h"

#include "config/wording.h"
#include "model/number.h"

#include <algorithm>
#include <optional>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace berth::config {
namespace {

using model::ErrorKind;
using model::fail;

std::optional<std::uint16_t> port_of(std::string_view text) {
  const auto port = model::to_number<std::uint16_t>(text);
  return port == 0 ? std::nullopt : port;
}

model::Result<ListenAddress> socket_path(std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(text.begin(), text.end(), is_control)) {
    return fail(ErrorKind::invalid_input, "the path holds a control character");
  }
  if (text.back() == '/') return fail(ErrorKind::invalid_input, "the path of a socket cannot end in /");
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (text.size() > kLongest) {
    return fail(ErrorKind::invalid_input, fmt::format("the path of a socket has at most {} bytes", kLongest));
  }
  return ListenAddress{ListenAddress::Kind::unix_socket, "", 0, std::string(text)};
}

}  // namespace

model::Result<ListenAddress> parse_listen_address(std::string_view text) {
  if (text.empty()) return ListenAddress{};
  if (text.front() == '/') return socket_path(text);
  const auto colon = text.rfind(':');
  const bool bracketed =
      text.front() == '[' && colon != std::string_view::npos && colon > 1 && text[colon - 1] == ']';
  const std::string host(bracketed ? text.substr(1, colon - 2) : text.substr(0, colon));
  in_addr four{};
  in6_addr six{};
  if (colon == std::string_view::npos || inet_pton(bracketed ? AF_INET6 : AF_INET, host.c_str(),
                                                   bracketed ? static_cast<void*>(&six) : &four) != 1) {
    return fail(ErrorKind::invalid_input,
                fmt::format("{} is not \"127.0.0.1:PORT\", \"[::1]:PORT\" or the absolute path of a socket",
                            quote(text)));
  }
  if (bracketed ? !IN6_IS_ADDR_LOOPBACK(&six) : (ntohl(four.s_addr) >> 24) != 127) {
    return fail(ErrorKind::refused,
                fmt::format("{} is not a loopback address; only 127.0.0.1 and ::1 are allowed", host));
  }
  const auto port = port_of(text.substr(colon + 1));
  if (!port) {
    return fail(ErrorKind::invalid_input,
                fmt::format("{} is not a port from 1 to 65535", quote(text.substr(colon + 1))));
  }
  return ListenAddress{bracketed ? ListenAddress::Kind::inet6 : ListenAddress::Kind::inet, host, *port, ""};
}

std::string to_string(const ListenAddress& address) {
  switch (address.kind) {
    case ListenAddress::Kind::none:
      return "";
    case ListenAddress::Kind::inet:
      return fmt::format("{}:{}", address.host, address.port);
    case ListenAddress::Kind::inet6:
      return fmt::format("[{}]:{}", address.host, address.port);
    case ListenAddress::Kind::unix_socket:
      return address.path;
  }
  return "";
}

}  // namespace berth::config
