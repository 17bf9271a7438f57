// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/listening_socket.h"
#include "integrations/extender/http_message.h"
#include "model/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace berth::extender {

// Answers questions by HTTP/1.1 on one thread, on kept connections. It never waits for one client. Every
// client that can connect is served, so all that a client can take has a limit.
class HttpServer {
 public:
  struct Limits {
    std::size_t connections = 256;  // a further client replaces the one that has been idle for longest
    std::size_t body_bytes = std::size_t{16} << 20;
    std::size_t all_bytes = std::size_t{128} << 20;  // of all unfinished requests and answers
    double request_s = 10;                           // from the first byte of a request to its last one
    double answer_s = 10;                            // from there to the end of the answer
    double idle_s = 300;                             // between requests
  };
  // `socket`: the number of the socket on which the request came.
  using Handler = std::function<Reply(std::size_t socket, const RequestHead& head, std::string_view body)>;

  HttpServer(std::vector<config::ListeningSocket> sockets, Handler handler, Limits limits);
  HttpServer(std::vector<config::ListeningSocket> sockets, Handler handler)
      : HttpServer(std::move(sockets), std::move(handler), Limits()) {}
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves until the descriptor `stop` can be read. Error: the system refuses to wait.
  model::Result<void> run(int stop);
  std::uint16_t port(std::size_t socket) const { return sockets_[socket].port(); }

 private:
  struct Connection;

  void accept_from(std::size_t socket, double now_s);
  void make_room();
  bool serve(Connection& connection, double now_s);
  bool receive(Connection& connection, double now_s);
  bool answer_whole_requests(Connection& connection, double now_s);
  bool send_rest(Connection& connection, double now_s);
  std::size_t bytes_of_others(const Connection& connection) const;

  std::vector<config::ListeningSocket> sockets_;
  Handler handler_;
  Limits limits_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace berth::extender
