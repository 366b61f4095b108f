"""Where the page of these tests is, and its token."""

TOKEN = "a-token"
HERE = "http://127.0.0.1:8321"
