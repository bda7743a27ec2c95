"""The web pages of `truekeep serve`."""
