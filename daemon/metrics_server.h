// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/listen_address.h"
#include "model/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <systemd/sd-event.h>

namespace berth::daemon {

// Serves GET /metrics over HTTP/1.1 on the loop's thread, to whoever can connect; never waits for anybody.
class MetricsServer {
 public:
  // The next one takes the place of the oldest that has not asked yet; where all are being answered it waits
  // in the kernel.
  static constexpr std::size_t kMaxConnections = 8;
  struct Deadlines {
    std::uint64_t request_usec = 2'000'000;  // from accepting a connection to the end of its request
    std::uint64_t answer_usec = 5'000'000;   // from there to the end of the connection
  };

  // Listens from here on; `text` is called for each answer. `event` outlives the server. A socket's file is
  // made anew where nobody listens on it any more, open to every user who can reach it, and removed in the
  // end. A port of 0 is any free one. Error names the address and says why nothing can listen there.
  static model::Result<std::unique_ptr<MetricsServer>> start(sd_event* event,
                                                             const config::ListenAddress& address,
                                                             std::function<std::string()> text,
                                                             Deadlines deadlines);
  static model::Result<std::unique_ptr<MetricsServer>> start(sd_event* event,
                                                             const config::ListenAddress& address,
                                                             std::function<std::string()> text) {
    return start(event, address, std::move(text), Deadlines());
  }
  // Drops what connections there are.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  std::uint16_t port() const;  // 0 for a socket's file
  std::size_t connections() const;
  // Why nobody can be taken just now; empty where nothing is known to be wrong.
  const std::string& problem() const;

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::daemon
