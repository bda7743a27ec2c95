"""Search over cards, documents, logs and transcripts: index, query, ranking, excerpts."""
