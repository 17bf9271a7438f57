// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/http_get.h"

#include "tests/unit/spark/http_server.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using model::ErrorKind;
using test::answer;
using test::HttpServer;
using test::Sent;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class HttpGetTest : public ::testing::Test {
 protected:
  model::Result<std::string> get(const HttpServer& server, const std::string& path = "/") {
    return HttpClient({.connect = 2000ms, .whole = whole, .body_bytes = 100'000}).get(server.url(path));
  }
  static HttpServer serving(const Sent& sent) {
    return HttpServer([sent](const std::string&) { return sent; });
  }

  std::chrono::milliseconds whole{20'000};
};

TEST_F(HttpGetTest, GivesTheBodyOfWhatIsThere) {
  const HttpServer server([](const std::string& path) { return answer("you asked " + path); });
  EXPECT_EQ(get(server, "/api?x=1").value(), "you asked /api?x=1");
}

TEST_F(HttpGetTest, OneClientAsksAgainAndAgain) {
  int asked = 0;
  const HttpServer server([&asked](const std::string&) { return answer(std::to_string(++asked)); });
  HttpClient client;
  EXPECT_EQ(client.get(server.url("/")).value(), "1");
  EXPECT_EQ(client.get(server.url("/")).value(), "2");
}

TEST_F(HttpGetTest, ARedirectIsNotFollowed) {
  bool followed = false;
  const HttpServer server([&followed](const std::string& path) {
    followed = followed || path == "/elsewhere";
    return Sent{.bytes = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"};
  });
  const auto body = get(server);
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().kind(), ErrorKind::refused);
  EXPECT_THAT(body.error().message(), HasSubstr("status 302 to http://127.0.0.1:"));
  EXPECT_THAT(body.error().message(), HasSubstr("/elsewhere: it wants a password or a login"));
  EXPECT_FALSE(followed);
}

TEST_F(HttpGetTest, ADriverBehindYarnsProxyFilterIsNamedWithItsLocation) {
  const std::string location = "http://rm.example:8088/proxy/redirect/application_1790000000000_0042/";
  const auto body = get(
      serving({.bytes = "HTTP/1.1 302 Found\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n"}));
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().kind(), ErrorKind::refused);
  EXPECT_THAT(body.error().message(), HasSubstr("status 302 to " + location + ": it is behind YARN's proxy"));
  EXPECT_THAT(body.error().message(), HasSubstr("progress_file"));
}

TEST(TextOfRefusal, NamesTheObstacleAndTheSettingThatHelps) {
  EXPECT_THAT(text_of_refusal(307, "http://h:8088/proxy/application_1_0001/api"), HasSubstr("YARN's proxy"));
  EXPECT_THAT(text_of_refusal(302, "https://h:4440/api"), HasSubstr("spark.ssl.ui.enabled = false"));
  for (const long status : {401L, 403L})
    EXPECT_THAT(text_of_refusal(status, ""), HasSubstr("spark.ui.filters"));
  EXPECT_THAT(text_of_refusal(302, "http://sso.example/login"), HasSubstr("spark.ui.filters"));
  EXPECT_EQ(text_of_refusal(404, ""), "status 404");
  EXPECT_EQ(text_of_refusal(500, ""), "status 500");
  EXPECT_LT(text_of_refusal(302, "http://h/proxy/" + std::string(5000, 'x')).size(), 300U);
}

TEST_F(HttpGetTest, AFilterThatForbidsIsARefusal) {
  const auto body = get(serving(answer("<html>no</html>", "403 Forbidden")));
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().kind(), ErrorKind::refused);
  EXPECT_THAT(body.error().message(), HasSubstr("status 403"));
}

TEST_F(HttpGetTest, AnEndlessBodyIsCutOff) {
  const auto body =
      get(serving({.bytes = "HTTP/1.1 200 OK\r\n\r\n" + std::string(4096, 'x'), .endless = true}));
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().kind(), ErrorKind::invalid_input);
  EXPECT_THAT(body.error().message(), HasSubstr("longer than 100000 bytes"));
}

TEST_F(HttpGetTest, WhoSaysNothingIsNotWaitedForTooLong) {
  whole = 200ms;
  for (const char* begun : {"", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[{"}) {
    const auto body = get(serving({.bytes = begun, .endless = false, .hang = true}));
    ASSERT_FALSE(body);
    EXPECT_EQ(body.error().kind(), ErrorKind::transient) << body.error().message();
  }
}

TEST_F(HttpGetTest, NobodyThereIsGone) {
  std::string url;
  {
    const HttpServer server([](const std::string&) { return answer(""); });
    url = server.url("/");
  }
  const auto body = HttpClient().get(url);
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().kind(), ErrorKind::gone) << body.error().message();
}

TEST_F(HttpGetTest, WhoHangsUpMidwayIsGone) {
  for (const char* sent : {"", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[{"}) {
    const auto body = get(serving({.bytes = sent}));
    ASSERT_FALSE(body);
    EXPECT_EQ(body.error().kind(), ErrorKind::gone) << body.error().message();
  }
}

TEST_F(HttpGetTest, WhatIsNotHttpIsAnError) {
  EXPECT_FALSE(get(serving({.bytes = std::string("\0\0\0\x15 some rpc frame", 19)})));
}

TEST_F(HttpGetTest, SpeaksHttpAlone) {
  for (const char* url : {"file:///etc/hostname", "ftp://127.0.0.1/", "gopher://127.0.0.1/"})
    EXPECT_FALSE(HttpClient().get(url)) << url;
}

}  // namespace
}  // namespace berth::spark
