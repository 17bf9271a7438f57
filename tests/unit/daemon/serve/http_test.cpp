// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/http.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::daemon {
namespace {

std::optional<HttpStatus> judged(const std::string& received) { return judge_request(received, "/metrics"); }

const std::string kGood = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

TEST(Http, AGetIsAnsweredOnceItIsComplete) {
  for (std::size_t length = 0; length < kGood.size(); ++length) {
    EXPECT_EQ(judged(kGood.substr(0, length)), std::nullopt) << length;
  }
  EXPECT_EQ(judged(kGood), HttpStatus::ok);
  EXPECT_EQ(judged(kGood + "more"), HttpStatus::ok);
  EXPECT_EQ(judged("GET /metrics HTTP/1.0\r\n\r\n"), HttpStatus::ok) << "1.0 knows no Host";
  EXPECT_EQ(judged("GET /metrics?name[]=x HTTP/1.1\r\nhost:\r\nAccept: a, b\r\n\r\n"), HttpStatus::ok);
}

TEST(Http, OtherPlacesAndMethodsAreRefused) {
  const std::string host = " HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const char* target : {"/", "/metric", "/metrics/", "/metricsx", "//metrics", "*", "/%6detrics"}) {
    EXPECT_EQ(judged(std::string("GET ") + target + host), HttpStatus::not_found) << target;
  }
  for (const char* method : {"POST", "head", "get", "DELETE", "PRI"}) {
    EXPECT_EQ(judged(std::string(method) + " /metrics" + host), HttpStatus::method_not_allowed) << method;
  }
}

TEST(Http, WhatIsNoRequestIsRefused) {
  for (const std::string& line :
       {std::string("GET"), std::string("GET /metrics"), std::string("GET  HTTP/1.1"),
        std::string(" /metrics HTTP/1.1"), std::string("GET /metrics HTTP/2.0"),
        std::string("GET /metrics http/1.1"), std::string("GET /a b HTTP/1.1"),
        std::string("G(T /metrics HTTP/1.1"), std::string()}) {
    EXPECT_EQ(judged(line + "\r\nHost: x\r\n\r\n"), HttpStatus::bad_request) << line;
  }
  for (const std::string& fields :
       {std::string(""), std::string("Host: a\r\nHost: b\r\n"), std::string("Host\r\n"),
        std::string("Host : a\r\n"), std::string(" Host: a\r\n"), std::string(": a\r\nHost: a\r\n"),
        std::string("Host: a\0b\r\n", 11), std::string("Host: a\nX: b\r\n")}) {
    EXPECT_EQ(judged("GET /metrics HTTP/1.1\r\n" + fields + "\r\n"), HttpStatus::bad_request) << fields;
  }
}

TEST(Http, GarbageIsRefusedBeforeItEnds) {
  EXPECT_EQ(judged(std::string("\x16\x03\x01", 3)), HttpStatus::bad_request) << "TLS";
  EXPECT_EQ(judged(std::string(1, '\0')), HttpStatus::bad_request);
  EXPECT_EQ(judged("GET /metrics HTTP/1.1\n"), HttpStatus::bad_request);
  EXPECT_EQ(judged("hello\r\n"), HttpStatus::bad_request);
}

TEST(Http, OpenMetricsIsForThoseWhoPreferIt) {
  const auto prefers = [](const std::string& accept) {
    return prefers_openmetrics("GET /metrics HTTP/1.1\r\nHost: x\r\n" + accept + "\r\n\r\n");
  };
  // As Prometheus 2.42 asks.
  EXPECT_TRUE(
      prefers("Accept: application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
              "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
  EXPECT_TRUE(prefers("accept:\tApplication/OpenMetrics-Text"));
  EXPECT_TRUE(prefers("Accept: text/plain;q=0.5\r\nAccept: application/openmetrics-text;q=0.51"));
  for (const char* accept :
       {"", "Accept: */*", "Accept: text/plain", "Accept:", "X: application/openmetrics-text",
        "Accept: application/openmetrics-text; q=0", "Accept: application/openmetrics-text; q=0.000",
        "Accept: application/openmetrics-text;q=0.4, text/plain;q=0.5",
        "Accept: application/openmetrics-text;q=x", "Accept: application/openmetrics-text;version=2.0.0",
        "Accept: ,;,=;q=", "Accept: application/openmetrics-texts"}) {
    EXPECT_FALSE(prefers(accept)) << accept;
  }
}

TEST(Http, ARequestHasAtMost4KiB) {
  const std::string start = "GET /metrics HTTP/1.1\r\nHost: x\r\nX: ";
  const std::string end = "\r\n\r\n";
  EXPECT_EQ(judged(start + std::string(kMaxRequestBytes - start.size() - 1, 'a')), std::nullopt);
  EXPECT_EQ(judged(start + std::string(kMaxRequestBytes - start.size(), 'a')), HttpStatus::bad_request);
  EXPECT_EQ(judged(start + std::string(kMaxRequestBytes - start.size() - end.size(), 'a') + end),
            HttpStatus::ok);
  EXPECT_EQ(judged("GET /" + std::string(kMaxRequestBytes, 'a')), HttpStatus::bad_request);
}

// A verdict, once there, does not depend on what follows in the same packet.
RC_GTEST_PROP(Http, AVerdictStays, (const std::string& tail)) {
  const auto cut = *rc::gen::inRange<std::size_t>(0, kGood.size() + 1);
  const std::string received = kGood.substr(0, cut) + tail;
  std::optional<HttpStatus> verdict;
  for (std::size_t length = 0; length <= received.size(); ++length) {
    const auto now = judged(received.substr(0, length));
    if (verdict) RC_ASSERT(now == verdict);
    verdict = now;
  }
}

TEST(Http, ResponsesSayTheirLengthAndClose) {
  EXPECT_EQ(http_response(HttpStatus::ok, "text/plain; version=0.0.4", "a 1\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: 4\r\nConnection: "
            "close\r\n\r\na 1\n");
  EXPECT_NE(http_response(HttpStatus::method_not_allowed).find("\r\nAllow: GET, HEAD\r\n"),
            std::string::npos);
  EXPECT_NE(http_response(HttpStatus::not_found).find("\r\nContent-Length: 10\r\n"), std::string::npos);
}

}  // namespace
}  // namespace berth::daemon
