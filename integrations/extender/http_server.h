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
// client that can connect is served, so all that a client can take has a limit. A client that exceeds what
// all may have together replaces an older one, so that none can keep the others out.
class HttpServer {
 public:
  // Clients of one listening socket take nothing from those of another.
  struct Limits {
    std::size_t connections = 256;  // of each listening socket
    std::size_t body_bytes = std::size_t{16} << 20;
    // A request or an answer up to here is a short one.
    std::size_t short_bytes = std::size_t{1} << 20;
    // Received and not yet answered, or answered and not yet sent: of all short ones of a listening socket,
    // and of all long ones.
    std::size_t all_short_bytes = std::size_t{32} << 20;
    std::size_t all_long_bytes = std::size_t{64} << 20;
    double request_s = 10;  // from the first byte of a request to its last one
    double answer_s = 10;   // from there to the answer, and from there to the end of the answer
    double idle_s = 300;    // between requests
  };
  // `socket`: the number of the socket on which the request came.
  using Handler = std::function<Reply(std::size_t socket, const RequestHead& head, std::string_view body)>;

  // `say` takes the lines of a FailureLog.
  HttpServer(std::vector<config::ListeningSocket> sockets, Handler handler, FailureLog::Say say,
             Limits limits);
  HttpServer(std::vector<config::ListeningSocket> sockets, Handler handler, FailureLog::Say say)
      : HttpServer(std::move(sockets), std::move(handler), std::move(say), Limits()) {}
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves until the descriptor `stop` can be read. Error: the system refuses to wait.
  model::Result<void> run(int stop);
  std::uint16_t port(std::size_t socket) const { return sockets_[socket].port(); }

 private:
  struct Connection;

  // The steps of a round. A connection that ends in one of them is marked, and erased after them, so that no
  // step meets a connection that is gone.
  void serve(Connection& connection, bool has_news, double now_s);
  void answer_whole_requests();
  void erase_ended();
  void accept_all(std::size_t socket, double now_s);

  void receive(Connection& connection, double now_s);
  void look_at(Connection& connection, double now_s);
  void refuse(Connection& connection, int status, Failure failure, const std::string& why, double now_s);
  void answer(Connection& connection);
  void send_rest(Connection& connection, double now_s);
  void keep_limits(const Connection& newest, double now_s);
  void fail(Connection& connection, Failure failure, const std::string& why, double now_s);
  // False if there is no connection to close.
  bool close_one(const std::size_t* socket, Failure failure, double now_s);
  bool waits() const;

  std::vector<config::ListeningSocket> sockets_;
  Handler handler_;
  Limits limits_;
  FailureLog failures_;
  std::vector<std::unique_ptr<Connection>> connections_;
  double accepts_from_s_ = 0;  // no new connection before
};

}  // namespace berth::extender
