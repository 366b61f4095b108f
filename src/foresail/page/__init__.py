"""The page: a study in the browser, read-only, on this machine alone (`foresail serve`, docs/page.md)."""
