"""The record: entries as Markdown files, their index, and the writes that are held outside it."""
