// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/listen_address.h"
#include "model/capability.h"
#include "model/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <systemd/sd-event.h>

namespace berth::daemon {

// The answer is in version 0.0.4 of the text format that Prometheus scrapes, or in OpenMetrics where the
// client wants that.
inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";
inline constexpr const char* kOpenMetricsContentType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Serves GET /metrics over HTTP/1.1 on the loop's thread, to every client that can connect. It never waits
// for a client.
class MetricsServer {
 public:
  // A further client replaces the oldest that has not sent its request yet. Where all are being answered, it
  // waits in the kernel.
  static constexpr std::size_t kMaxConnections = 8;
  struct Deadlines {
    std::uint64_t request_usec = 2'000'000;  // from accepting a connection to the end of its request
    std::uint64_t answer_usec = 5'000'000;   // from there to the end of the connection
  };

  // Listens from now on, and calls `text` for each answer. `event` outlives the server. A socket's file is
  // made anew where no process listens on it any more. It is open to every user that can reach it, and
  // removed in the end. A port of 0 is any free one. Error names the address and the reason.
  static model::Result<std::unique_ptr<MetricsServer>> start(sd_event* event,
                                                             const config::ListenAddress& address,
                                                             std::function<std::string()> text,
                                                             Deadlines deadlines);
  static model::Result<std::unique_ptr<MetricsServer>> start(sd_event* event,
                                                             const config::ListenAddress& address,
                                                             std::function<std::string()> text) {
    return start(event, address, std::move(text), Deadlines());
  }
  // Drops all connections.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  std::uint16_t port() const;  // 0 for a socket's file
  std::size_t connections() const;
  // Why no client can be accepted just now; empty where no fault is known.
  const std::string& problem() const;

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Keeps a metrics server where the configuration wants one, and tries again from time to time where it fails.
// Serves nothing before attach().
class MetricsEndpoint {
 public:
  static constexpr double kRetry_s = 10;

  explicit MetricsEndpoint(std::function<std::string()> text) : text_(std::move(text)) {}

  // `event` must live until detach().
  void attach(sd_event* event) { event_ = event; }
  void detach();
  // Cheap where nothing changed. `now` in epoch seconds.
  void keep(const config::ListenAddress& wanted, double now);

  // nullopt where none is configured.
  std::optional<model::Capability> capability() const;

 private:
  std::function<std::string()> text_;
  sd_event* event_ = nullptr;
  config::ListenAddress address_;
  std::unique_ptr<MetricsServer> server_;
  std::string problem_;  // as last logged
  double tried_at_ = 0;
};

}  // namespace berth::daemon
