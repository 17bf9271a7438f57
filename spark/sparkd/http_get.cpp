// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/http_get.h"

#include <curl/curl.h>
#include <fmt/core.h>

namespace berth::spark {

struct HttpClient::State {
  HttpLimits limits;
  CURL* handle = nullptr;
  curl_slist* headers = nullptr;
  std::string body;
  bool too_long = false;
};

namespace {

std::size_t take(char* data, std::size_t size, std::size_t count, void* user) {
  auto& state = *static_cast<HttpClient::State*>(user);
  if (state.body.size() + size * count > state.limits.body_bytes) {
    state.too_long = true;
    return 0;
  }
  // The last step to the limit is one step: doubling would hold two large bodies at once.
  constexpr std::size_t kSmall = std::size_t{1} << 20;
  const std::size_t need = state.body.size() + size * count;
  if (need > kSmall && state.body.capacity() < state.limits.body_bytes)
    state.body.reserve(state.limits.body_bytes);
  state.body.append(data, size * count);
  return size * count;
}

model::ErrorKind kind_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
      return model::ErrorKind::gone;
    case CURLE_OPERATION_TIMEDOUT:
      return model::ErrorKind::transient;
    default:
      return model::ErrorKind::io;
  }
}

}  // namespace

std::string text_of_refusal(long status, std::string_view location) {
  constexpr std::size_t kMostLocationBytes = 120;
  std::string said = fmt::format("status {}", status);
  if (!location.empty()) said += fmt::format(" to {}", location.substr(0, kMostLocationBytes));
  if (location.find("/proxy/") != std::string_view::npos &&
      location.find("application_") != std::string_view::npos) {
    return said +
           ": it is behind YARN's proxy filter, which no setting of Spark lifts for this host. A "
           "progress_file in "
           "the workload's rule tells its progress; its executors cost the CPU time that they used";
  }
  if (location.starts_with("https:"))
    return said +
           ": it speaks TLS alone, and berth plain HTTP; spark.ssl.ui.enabled = false lets berth ask it";
  if (status == 401 || status == 403 || status == 407 || !location.empty()) {
    return said +
           ": it wants a password or a login; a filter in spark.ui.filters that lets 127.0.0.1 pass, or "
           "none, lets "
           "berth ask it";
  }
  return said;
}

HttpClient::HttpClient(HttpLimits limits) : state_(std::make_unique<State>()) { state_->limits = limits; }

HttpClient::~HttpClient() {
  if (state_->handle == nullptr) return;
  curl_easy_cleanup(state_->handle);
  curl_slist_free_all(state_->headers);
}

model::Result<void> HttpClient::open() {
  if (state_->handle != nullptr) return {};
  // Plain HTTP needs no global initialisation, and that of TLS is slow.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_NOTHING);
  CURL* handle = state_->handle = ready == CURLE_OK ? curl_easy_init() : nullptr;
  if (handle == nullptr)
    return model::fail(model::ErrorKind::unavailable, "libcurl has no memory for a connection");
  state_->headers = curl_slist_append(nullptr, "Accept: application/json");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, state_->headers);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "berth-sparkd");
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_PROXY, "");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(state_->limits.connect.count()));
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(state_->limits.whole.count()));
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, state_.get());
  return {};
}

model::Result<std::string> HttpClient::get(const std::string& url) {
  const auto error = [&](model::ErrorKind kind, const std::string& why) {
    return model::fail(kind, fmt::format("GET {}: {}", url, why));
  };
  if (const auto opened = open(); !opened) return error(opened.error().kind(), opened.error().message());
  state_->body.clear();
  state_->too_long = false;
  curl_easy_setopt(state_->handle, CURLOPT_URL, url.c_str());
  const CURLcode code = curl_easy_perform(state_->handle);
  if (state_->too_long) {
    return error(model::ErrorKind::invalid_input,
                 fmt::format("the answer is longer than {} bytes", state_->limits.body_bytes));
  }
  if (code != CURLE_OK) return error(kind_of(code), curl_easy_strerror(code));
  long status = 0;
  curl_easy_getinfo(state_->handle, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) {
    const char* location = nullptr;
    curl_easy_getinfo(state_->handle, CURLINFO_REDIRECT_URL, &location);
    return error(model::ErrorKind::refused, text_of_refusal(status, location == nullptr ? "" : location));
  }
  return std::move(state_->body);
}

}  // namespace berth::spark
