// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace berth::spark::test {

// All that is sent on a connection after a request came in.
struct Sent {
  std::string bytes;
  bool endless = false;  // `bytes` over and over, until the client goes
  bool hang = false;     // afterwards, keep the connection and send nothing
};

Sent answer(const std::string& body, const std::string& status = "200 OK");

// A small HTTP server on the loopback, one connection at a time.
class HttpServer {
 public:
  using Handler = std::function<Sent(const std::string& path)>;
  explicit HttpServer(Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const { return port_; }
  // The newest one: its head, and its body of Content-Length.
  std::string last_request() const;
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }

 private:
  void serve();
  void talk(int fd);
  // Whether the descriptor became ready before the server is to stop.
  bool wait(int fd, short events) const;

  Handler handler_;
  mutable std::mutex mutex_;
  std::string last_request_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace berth::spark::test
