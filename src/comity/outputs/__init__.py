"""Where visits go.

`rows` says what a visit looks like to the people who use a crawl, `jsonl` writes rows to a file, `crawllog` writes the
evidence of what was asked and why, and `files` is what the two stand on. A sink is whatever satisfies `ports.Sink`: a
user's own needs nothing from here.
"""
