"""Finds credentials in text."""
