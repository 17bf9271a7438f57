// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "integrations/kubernetes/api.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace berth::kubernetes {

// Longer tokens are refused.
inline constexpr std::size_t kMaxTokenBytes = std::size_t{16} << 10;

// Paths of files are absolute, or "" for none.
struct Access {
  std::string server;       // "https://HOST:PORT", without a slash at its end
  std::string ca;           // certificates that the server's has to lead to
  std::string token;        // a file with a bearer token, which is read again for each request
  std::string certificate;  // the client's own one, and its key
  std::string key;
  std::chrono::milliseconds connect_limit{5000};
  std::chrono::milliseconds whole_limit{10000};
};

// Asks by HTTP/1.1 over TLS, for one thread, with one kept connection. It follows no redirect and asks no
// proxy. Certificates are read again with each new connection: after ten minutes, and after each failure. No
// connection resumes the TLS session of an earlier one, because it would keep the identity of the certificate
// before. An answer of more than kMaxAnswerBytes is a fault.
class HttpsApi : public Api {
 public:
  // `stopped` is asked about once a second: if it is true, the request ends with a fault.
  explicit HttpsApi(Access access, bool (*stopped)() = nullptr);
  ~HttpsApi() override;

  Answer patch(const std::string& path, const std::string& body) override;
  Answer create(const std::string& path, const std::string& body) override;
  Answer list(const std::string& path) override;
  // From now on requests are no longer ended by `stopped`, and each has the limit `one`. After `all` no
  // further request is made, and none lasts longer than that.
  void finish_within(std::chrono::milliseconds all, std::chrono::milliseconds one);

  struct State;

 private:
  struct Request;
  Answer ask(const Request& request);

  std::unique_ptr<State> state_;
};

}  // namespace berth::kubernetes
