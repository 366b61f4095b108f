"""For tests of Foresail and of what is built on it: strategies of events and logs (hypothesis), digests of views."""
