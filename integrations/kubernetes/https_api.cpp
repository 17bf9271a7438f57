// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/https_api.h"

#include "integrations/kubernetes/node.h"
#include "model/error.h"
#include "model/text.h"
#include "os/file_descriptor.h"
#include "os/read_file.h"
#include "os/safe_path.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::kubernetes {

namespace {

// The files that TLS takes. OpenSSL and libcurl do not say which of them is at fault.

// More of a file is not looked at.
constexpr std::size_t kMaxPemBytes = std::size_t{1} << 20;

// The ends of lines "-----BEGIN TRUSTED CERTIFICATE-----" and "-----BEGIN EC PRIVATE KEY-----".
constexpr std::string_view kCertificate = "CERTIFICATE-----";
constexpr std::string_view kKey = "PRIVATE KEY-----";

std::string could_not(const char* attempt, const std::string& name) {
  return model::Error::from_errno(errno, fmt::format("cannot {} {}", attempt, name)).message();
}

std::optional<std::string> why_no_pem(const char* setting, const std::string& path, std::string_view wanted) {
  if (path.empty()) return std::nullopt;
  const std::string name = fmt::format("{} {}", setting, path);
  // A FIFO does not hold it up.
  const os::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return could_not("open", name);
  if (!S_ISREG(status.st_mode)) return name + " is no regular file";
  std::string text;
  if (!os::read_up_to(file.get(), kMaxPemBytes, text)) return could_not("read", name);
  if (text.empty()) return name + " is empty";
  if (text.find(wanted) != std::string::npos || text.size() == kMaxPemBytes) return std::nullopt;
  const bool key = wanted == kKey;
  const bool other = text.find(key ? kCertificate : kKey) != std::string::npos;
  if (!other) return fmt::format("{} has no {} in PEM", name, key ? "private key" : "certificate");
  return fmt::format("{} has a {} in place of a {}", name, key ? "certificate" : "private key",
                     key ? "private key" : "certificate");
}

// Why TLS cannot use the files of `access`: one of them cannot be opened, is no regular file, is empty, or
// has nothing of its kind in PEM (RFC 7468). It begins with the setting and the path: "ca /x/ca.crt is
// empty". nullopt if TLS may try, and for a server without TLS. Symbolic links are followed.
std::optional<std::string> why_no_pem_files(const Access& access) {
  if (!access.server.starts_with("https://")) return std::nullopt;
  if (auto why = why_no_pem("ca", access.ca, kCertificate)) return why;
  if (auto why = why_no_pem("certificate", access.certificate, kCertificate)) return why;
  return why_no_pem("key", access.key, kKey);
}

}  // namespace

struct HttpsApi::State {
  Access access;
  bool (*stopped)() = nullptr;
  CURL* handle = nullptr;
  std::string body;
  bool too_long = false;
  std::optional<std::chrono::steady_clock::time_point> end;  // of all requests
  bool fresh = true;                                         // the next request needs a connection of its own
  std::array<char, CURL_ERROR_SIZE> words{};                 // libcurl's own ones on the last failure
};

namespace {

constexpr long kConnectionLifetime_s = 600;
// The server's wish is not trusted beyond this.
constexpr double kMostRetryAfter_s = 600;

std::size_t take_data(char* data, std::size_t size, std::size_t count, void* user) {
  auto& state = *static_cast<HttpsApi::State*>(user);
  if (state.body.size() + size * count > kMaxAnswerBytes) {
    state.too_long = true;
    return 0;
  }
  state.body.append(data, size * count);
  return size * count;
}

int is_stopped(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& state = *static_cast<HttpsApi::State*>(user);
  return state.stopped != nullptr && state.stopped() ? 1 : 0;
}

const char* kind_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return "name";
    case CURLE_COULDNT_CONNECT:
      return "connect";
    case CURLE_OPERATION_TIMEDOUT:
      return "timeout";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
      return "tls";
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
      return "certificates";
    default:
      return "connection";
  }
}

Answer fault(std::string kind, std::string why) {
  Answer answer;
  answer.fault_kind = std::move(kind);
  answer.fault = std::move(why);
  return answer;
}

// The failed request, with the file that is at fault if TLS is.
std::string failure_text(const HttpsApi::State& state, const std::string& url, CURLcode code) {
  const Access& access = state.access;
  const char* general = curl_easy_strerror(code);
  const std::string words = state.words[0] == '\0' ? general : state.words.data();
  if (code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM) {
    // A kept connection has ended, and its files have changed since.
    if (auto why = why_no_pem_files(access)) return *why;
  }
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      return fmt::format("ca {} does not vouch for {}: {}", access.ca, access.server, words);
    case CURLE_SSL_CACERT_BADFILE:
      return fmt::format("ca {} has no certificate that can be read; copy the authority of the cluster again",
                         access.ca);
    case CURLE_SSL_CERTPROBLEM:
      return fmt::format("certificate {} and key {} cannot be used together: {}", access.certificate,
                         access.key, words);
    case CURLE_SSL_CONNECT_ERROR:
      return fmt::format("{}: {}", url, words);
    default:
      return fmt::format("{}: {}", url, general);
  }
}

// The token of the file. A byte that could end the header is a fault.
model::Result<std::string> read_token(const std::string& path) {
  const auto file = os::open_user_file(path);
  if (!file) return model::fail(file.error());
  std::string token;
  if (!os::read_up_to(file->get(), kMaxTokenBytes + 1, token))
    return model::fail(model::Error::from_errno(errno, path));
  token.resize(model::trimmed_end(token, "\r\n").size());
  if (token.empty()) return model::fail(model::ErrorKind::invalid_input, path + " is empty");
  if (token.size() > kMaxTokenBytes || !std::all_of(token.begin(), token.end(), model::is_visible))
    return model::fail(model::ErrorKind::invalid_input, path + ": this is no bearer token");
  return token;
}

void set_file(CURL* handle, CURLoption option, const std::string& path) {
  if (!path.empty()) curl_easy_setopt(handle, option, path.c_str());
}

// The headers of one request; releases them.
class Headers {
 public:
  Headers() = default;
  ~Headers() { curl_slist_free_all(list_); }
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  void add(const std::string& line) { list_ = curl_slist_append(list_, line.c_str()); }
  curl_slist* list() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// The time that is left for a request of this limit.
std::chrono::milliseconds left_of(std::chrono::milliseconds limit, const HttpsApi::State& state) {
  if (!state.end) return limit;
  const auto left = *state.end - std::chrono::steady_clock::now();
  return std::min(limit, std::chrono::ceil<std::chrono::milliseconds>(left));
}

bool open(HttpsApi::State& state) {
  if (state.handle != nullptr) return true;
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL* handle = state.handle = ready == CURLE_OK ? curl_easy_init() : nullptr;
  if (handle == nullptr) return false;
  const Access& access = state.access;
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "berth-kube/" BERTH_VERSION);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(handle, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_PROXY, "");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXLIFETIME_CONN, kConnectionLifetime_s);
  curl_easy_setopt(handle, CURLOPT_MAXAGE_CONN, kConnectionLifetime_s);
  curl_easy_setopt(handle, CURLOPT_MAXCONNECTS, 1L);
  // The server would go on with the identity of the certificate that began the session.
  curl_easy_setopt(handle, CURLOPT_SSL_SESSIONID_CACHE, 0L);
  // Nobody's certificates but the cluster's own are trusted.
  curl_easy_setopt(handle, CURLOPT_CAINFO, access.ca.empty() ? nullptr : access.ca.c_str());
  curl_easy_setopt(handle, CURLOPT_CAPATH, nullptr);
#if LIBCURL_VERSION_NUM >= 0x075700
  // libcurl would keep the authority of the first connection for a day, and read no file that replaces it.
  curl_easy_setopt(handle, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
  set_file(handle, CURLOPT_SSLCERT, access.certificate);
  set_file(handle, CURLOPT_SSLKEY, access.key);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, state.words.data());
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_data);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &state);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, is_stopped);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &state);
  return true;
}

}  // namespace

HttpsApi::HttpsApi(Access access, bool (*stopped)()) : state_(std::make_unique<State>()) {
  state_->access = std::move(access);
  state_->stopped = stopped;
}

HttpsApi::~HttpsApi() {
  if (state_->handle != nullptr) curl_easy_cleanup(state_->handle);
}

void HttpsApi::finish_within(std::chrono::milliseconds all, std::chrono::milliseconds one) {
  state_->stopped = nullptr;
  state_->access.connect_limit = state_->access.whole_limit = one;
  state_->end = std::chrono::steady_clock::now() + all;
}

struct HttpsApi::Request {
  const char* method;
  const std::string& path;
  const std::string* body;  // nullptr for none
  const char* content = "application/json";
  const char* accept = "application/json";
};

Answer HttpsApi::patch(const std::string& path, const std::string& body) {
  return ask({.method = "PATCH", .path = path, .body = &body, .content = "application/merge-patch+json"});
}

Answer HttpsApi::create(const std::string& path, const std::string& body) {
  return ask({.method = "POST", .path = path, .body = &body});
}

Answer HttpsApi::list(const std::string& path) {
  return ask(
      {.method = "GET",
       .path = path,
       .body = nullptr,
       .accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"});
}

Answer HttpsApi::ask(const Request& request) {
  State& state = *state_;
  std::string authorization;
  if (!state.access.token.empty()) {
    const auto token = read_token(state.access.token);
    if (!token) return fault("token", token.error().message());
    authorization = "Authorization: Bearer " + *token;
  }
  // A kept connection needs no file.
  if (state.fresh) {
    if (auto why = why_no_pem_files(state.access)) return fault("certificates", std::move(*why));
  }
  if (!open(state)) return fault("memory", "libcurl has no memory for a connection");
  const auto connect_limit = left_of(state.access.connect_limit, state);
  const auto whole_limit = left_of(state.access.whole_limit, state);
  // To libcurl 0 means no limit. It may end a request some milliseconds early, and so little time is of no
  // use to the next one.
  constexpr std::chrono::milliseconds kLeast(10);
  if (whole_limit < kLeast)
    return fault("timeout", state.access.server + request.path + ": no time is left for this request");
  Headers headers;
  if (request.body != nullptr) headers.add(fmt::format("Content-Type: {}", request.content));
  headers.add(fmt::format("Accept: {}", request.accept));
  if (!authorization.empty()) headers.add(authorization);
  const std::string url = state.access.server + request.path;
  state.body.clear();
  state.too_long = false;
  state.words[0] = '\0';
  curl_easy_setopt(state.handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(state.handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect_limit.count()));
  curl_easy_setopt(state.handle, CURLOPT_TIMEOUT_MS, static_cast<long>(whole_limit.count()));
  curl_easy_setopt(state.handle, CURLOPT_HTTPHEADER, headers.list());
  if (request.body == nullptr) {
    curl_easy_setopt(state.handle, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(state.handle, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body->size()));
    curl_easy_setopt(state.handle, CURLOPT_POSTFIELDS, request.body->c_str());
  }
  curl_easy_setopt(state.handle, CURLOPT_CUSTOMREQUEST, request.method);
  curl_easy_setopt(state.handle, CURLOPT_FRESH_CONNECT, state.fresh ? 1L : 0L);
  const CURLcode code = curl_easy_perform(state.handle);
  curl_easy_setopt(state.handle, CURLOPT_HTTPHEADER, nullptr);
  // Perhaps the files have changed, or the server is another one now.
  state.fresh = true;
  if (state.too_long)
    return fault(kTooLong, fmt::format("{}: the answer is longer than {} bytes", url, kMaxAnswerBytes));
  if (code != CURLE_OK) return fault(kind_of(code), failure_text(state, url, code));
  Answer answer;
  long status = 0;
  curl_off_t wait_s = 0;
  curl_easy_getinfo(state.handle, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(state.handle, CURLINFO_RETRY_AFTER, &wait_s);
  answer.status = static_cast<int>(status);
  if (wait_s > 0) answer.retry_after_s = std::min(static_cast<double>(wait_s), kMostRetryAfter_s);
  answer.body = std::move(state.body);
  state.fresh = answer.status < 200 || answer.status > 299;
  return answer;
}

}  // namespace berth::kubernetes
